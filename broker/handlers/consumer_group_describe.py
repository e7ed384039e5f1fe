"""ConsumerGroupDescribe (69): describes the epochs, members and assignments of consumer groups (KIP-848).

v1 adds the protocol that each member speaks (KIP-1099).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, Protocol, TypeVar

from broker.dispatch.api import CONSUMER_GROUPS, Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_client import client_of
from broker.dispatch.operations import group_operations
from broker.dispatch.rules import each, in_order, itself
from broker.request.authorisation import DESCRIBE_GROUP, DESCRIBE_TOPIC, inside
from broker.shards.groups import Decide
from coordinator.group.consumer.describe import describe
from coordinator.group.modern.describe import undescribed
from coordinator.group.state import Client
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import share_group_describe, streams_group_describe
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

HIDDEN: Final = "The group has described topic(s) that the client is not authorized to describe."
"""The message of a group with members that the client may not describe. Nothing else of the group is described."""


class GroupDescribeRequest(Protocol):
    """A request for descriptions of groups."""

    group_ids: list[str]
    include_authorized_operations: bool


R = TypeVar("R", bound=GroupDescribeRequest)
D = TypeVar("D", DescribedGroup, share_group_describe.DescribedGroup, streams_group_describe.DescribedGroup)


async def consumer_group_describe(call: Call[ConsumerGroupDescribeRequest]) -> ConsumerGroupDescribeResponse:
    groups = await described_groups(call, partial(undescribed, DescribedGroup), describe, topics_of)
    return ConsumerGroupDescribeResponse(groups=groups)


async def described_groups(
    call: Call[R],
    undescribed: Callable[[str, KafkaError], D],
    decide: Decide[str, Client, D],
    topics_of: Callable[[D], Iterable[str]],
    items_of: Callable[[D], int] = lambda group: len(group.members),
    hidden: str = HIDDEN,
) -> list[D]:
    """Returns the descriptions of the groups in the request. `undescribed` returns the answer for a group that can't be
    described, with the error; `topics_of` returns a group's topics, and `items_of` counts its items."""

    async def described(group_id: str) -> D:
        try:
            if not group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            result = await call.broker.groups.submit(group_id, decide, group_id, client_of(call))
            call.count(items_of(result))
            names = set(topics_of(result))
            if not names <= await call.permitted(DESCRIBE_TOPIC, names, quiet=True):
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, hidden)
        except KafkaError as error:
            return undescribed(group_id, error)
        if not result.error_code:
            is_requested = call.request.include_authorized_operations
            result.authorized_operations = group_operations(call, group_id, is_requested)
        return result

    return await call.turns().map_awaited(described, call.request.group_ids)


def topics_of(group: DescribedGroup) -> Iterator[str]:
    """Yields the topics of the members: their subscriptions, assignments and target assignments."""
    for member in group.members:
        yield from member.subscribed_topic_names
        for assignment in (member.assignment, member.target_assignment):
            yield from (topic.topic_name for topic in assignment.topic_partitions)


DESCRIPTION: Final = in_order(
    each(DESCRIBE_GROUP, "group_ids", "groups", itself),
    inside("for every topic of its members; otherwise the group has an error", DESCRIBE_TOPIC),
)
"""The rule of a description of groups of consumers or share groups."""

API = Api(
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    consumer_group_describe,
    authorize=DESCRIPTION,
    protocol=CONSUMER_GROUPS,
    entries=(Entries("group_ids", "groups"),),
    explains=True,
)
