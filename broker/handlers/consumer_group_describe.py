"""ConsumerGroupDescribe (69): describes the epochs, members and assignments of consumer groups (KIP-848).

v1 adds the protocol that each member speaks (KIP-1099).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_access import DESCRIPTION, HIDDEN, may_describe_members
from broker.dispatch.group_client import client_of
from broker.dispatch.operations import group_operations
from broker.handlers.consumer_group_heartbeat import check_enabled
from coordinator.group.consumer.describe import describe
from coordinator.group.modern.describe import undescribed
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)


async def consumer_group_describe(call: Call[ConsumerGroupDescribeRequest]) -> ConsumerGroupDescribeResponse:
    groups = await call.turns().map_awaited(partial(one_group, call), call.request.group_ids)
    return ConsumerGroupDescribeResponse(groups=groups)


async def one_group(call: Call[ConsumerGroupDescribeRequest], group_id: str) -> DescribedGroup:
    try:
        check_enabled(call.broker)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = await call.broker.groups.submit(group_id, describe, group_id, client_of(call))
    except KafkaError as error:
        return undescribed(DescribedGroup, group_id, error)
    call.count(len(group.members))
    if not group.error_code:
        group.authorized_operations = group_operations(call, group_id, call.request.include_authorized_operations)
    return (
        group
        if await may_describe_members(call, group.members, topics_of)
        else undescribed(DescribedGroup, group_id, HIDDEN)
    )


def topics_of(member: Member) -> Iterator[str]:
    """Yields the topics of a member: its subscription, its assignment and its target assignment."""
    yield from member.subscribed_topic_names
    for assignment in (member.assignment, member.target_assignment):
        yield from (topic.topic_name for topic in assignment.topic_partitions)


API = Api(
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    consumer_group_describe,
    authorize=DESCRIPTION,
    entries=(Entries("group_ids", "groups"),),
)
