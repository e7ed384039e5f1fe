"""ShareGroupDescribe (77): describes the epochs, members and assignments of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from broker.dispatch.api import SHARE_GROUPS, Api, Entries
from broker.dispatch.call import Call
from broker.handlers.consumer_group_describe import DESCRIPTION, described_groups
from coordinator.group.modern.describe import undescribed
from coordinator.group.share.describe import describe
from protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


async def share_group_describe(call: Call[ShareGroupDescribeRequest]) -> ShareGroupDescribeResponse:
    groups = await described_groups(call, partial(undescribed, DescribedGroup), describe, topics_of)
    return ShareGroupDescribeResponse(groups=groups)


def topics_of(group: DescribedGroup) -> Iterator[str]:
    """Yields the topics of the members: their subscriptions and assignments."""
    for member in group.members:
        yield from member.subscribed_topic_names
        yield from (topic.topic_name for topic in member.assignment.topic_partitions)


API = Api(
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    share_group_describe,
    authorize=DESCRIPTION,
    protocol=SHARE_GROUPS,
    entries=(Entries("group_ids", "groups"),),
    explains=True,
)
