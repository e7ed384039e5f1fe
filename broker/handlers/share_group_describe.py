"""ShareGroupDescribe (77): describes the epochs, members and assignments of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_access import DESCRIPTION, HIDDEN, may_describe_members
from broker.dispatch.group_client import client_of
from broker.dispatch.operations import group_operations
from coordinator.group.modern.describe import undescribed
from coordinator.group.share.describe import describe
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group_describe import (
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


async def share_group_describe(call: Call[ShareGroupDescribeRequest]) -> ShareGroupDescribeResponse:
    groups = await call.turns().map_awaited(partial(one_group, call), call.request.group_ids)
    return ShareGroupDescribeResponse(groups=groups)


async def one_group(call: Call[ShareGroupDescribeRequest], group_id: str) -> DescribedGroup:
    try:
        if not call.broker.share_groups.is_enabled:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
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
    """Yields the topics of a member: its subscription and its assignment."""
    yield from member.subscribed_topic_names
    yield from (topic.topic_name for topic in member.assignment.topic_partitions)


API = Api(
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    share_group_describe,
    authorize=DESCRIPTION,
    entries=(Entries("group_ids", "groups"),),
)
