"""The client of a request, as the group coordinator sees it."""

from __future__ import annotations

from typing import TypeVar

from broker.dispatch.call import Call
from broker.request.authorisation import DESCRIBE_TOPIC
from coordinator.group.state import Client
from protocol.errors import ErrorCode, KafkaError
from protocol.tuples import new_tuple

Q = TypeVar("Q")


def client_of(call: Call[Q]) -> Client:
    """Returns the client as groups store it with their members: Java prints addresses with a slash."""
    return new_tuple(Client, (call.version, call.client_id or "", f"/{call.connection.ip}", None))


def limited_client_of(call: Call[Q]) -> Client:
    """Returns the client with its authorization: its subscription's pattern matches only topics that it may
    describe."""
    if call.host.authorizer is None:
        return client_of(call)
    return client_of(call)._replace(may_describe=lambda topic: call.may(DESCRIBE_TOPIC, topic, quiet=True))


def check_group_id(group_id: str) -> None:
    """Raises INVALID_GROUP_ID for an empty id: members need a named group; consumers that only commit offsets do
    not."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
