"""How handlers ask a group's coordinator: on whose behalf."""

from __future__ import annotations

from typing import Final, TypeVar

from broker.requests.call import Call
from coordinator.group.state import Client
from protocol.errors import ErrorCode, KafkaError

_new: Final = tuple.__new__  # a NamedTuple's own constructor costs three times as much

Q = TypeVar("Q")


def client_of(call: Call[Q]) -> Client:
    """Who asks, as groups note it of their members: Java prints addresses with a slash."""
    return _new(Client, (call.version, call.client_id or "", f"/{call.connection.ip}"))


def check_group_id(group_id: str) -> None:
    """Members have no group without a name; consumers that only keep offsets may. Raises INVALID_GROUP_ID."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
