"""Groups of every type: listed and described."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from commands.cluster_client import ClusterClient, CoordinatorKind
from commands.errors import CommandError, raise_if, refusal
from protocol import consumer_protocol
from protocol.consumer_protocol import ConsumerProtocolAssignment
from protocol.errors import ErrorCode, ProtocolError
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from protocol.messages.describe_groups import DescribedGroupMember, DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from protocol.types import TopicPartition

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"
TYPES: Final = (CLASSIC, CONSUMER, SHARE, STREAMS)


class GroupListing(NamedTuple):
    """A group as its coordinator lists it."""

    group: str
    type: str
    state: str
    protocol: str
    coordinator: int


class GroupMember(NamedTuple):
    """A member, with the partitions that it has."""

    member: str
    instance: str | None
    client: str
    host: str
    partitions: list[TopicPartition]


class GroupDescription(NamedTuple):
    """A group with its members."""

    group: str
    type: str
    state: str
    assignor: str
    coordinator: int
    members: list[GroupMember]


async def list_groups(cluster: ClusterClient) -> list[GroupListing]:
    """Returns all groups of the cluster, by name. Raises CommandError."""
    answers = await cluster.every(ListGroupsRequest(), ListGroupsResponse)
    groups: list[GroupListing] = []
    for node, answer in answers.items():
        raise_if(f"groups of broker {node}", answer.error_code)
        for one in answer.groups:
            kind = (one.group_type or CLASSIC).lower()
            groups.append(GroupListing(one.group_id, kind, one.group_state, one.protocol_type, node))
    return sorted(groups)


async def type_of(cluster: ClusterClient, group: str) -> str:
    """Returns the type of a group. Raises CommandError where there is none."""
    for listing in await list_groups(cluster):
        if listing.group == group:
            return listing.type
    raise refusal(f"group {group}", ErrorCode.GROUP_ID_NOT_FOUND)


async def describe_group(cluster: ClusterClient, group: str, kind: str | None = None) -> GroupDescription:
    """Returns a group with its members. Raises CommandError where there is none."""
    chosen = kind or await type_of(cluster, group)
    describe = {CLASSIC: _classic, CONSUMER: _consumer, SHARE: _share}.get(chosen)
    if describe is None:
        raise CommandError(f"group {group} is a {chosen} group, of which its members alone know more")
    description = await describe(cluster, group)
    return description._replace(coordinator=await cluster.coordinator(CoordinatorKind.GROUP, group))


async def _classic(cluster: ClusterClient, group: str) -> GroupDescription:
    answer = await cluster.coordinated(
        CoordinatorKind.GROUP,
        group,
        DescribeGroupsRequest(groups=[group]),
        DescribeGroupsResponse,
        code=lambda answer: answer.groups[0].error_code,
    )
    described = answer.groups[0]
    raise_if(f"group {group}", described.error_code, described.error_message)
    members = [
        GroupMember(one.member_id, one.group_instance_id, one.client_id, one.client_host, _assigned(one))
        for one in described.members
    ]
    return GroupDescription(group, CLASSIC, described.group_state, described.protocol_data, -1, members)


def _assigned(member: DescribedGroupMember) -> list[TopicPartition]:
    """Returns what a classic member has; nothing for one whose assignment is no consumer's."""
    if not member.member_assignment:
        return []
    try:
        assignment = consumer_protocol.read(ConsumerProtocolAssignment, member.member_assignment)
    except ProtocolError:
        return []
    return sorted(
        TopicPartition(entry.topic, index) for entry in assignment.assigned_partitions for index in entry.partitions
    )


async def _consumer(cluster: ClusterClient, group: str) -> GroupDescription:
    answer = await cluster.coordinated(
        CoordinatorKind.GROUP,
        group,
        ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False),
        ConsumerGroupDescribeResponse,
        code=lambda answer: answer.groups[0].error_code,
    )
    described = answer.groups[0]
    raise_if(f"group {group}", described.error_code, described.error_message)
    members = [
        GroupMember(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            _places((entry.topic_name, entry.partitions) for entry in one.assignment.topic_partitions),
        )
        for one in described.members
    ]
    return GroupDescription(group, CONSUMER, described.group_state, described.assignor_name, -1, members)


async def _share(cluster: ClusterClient, group: str) -> GroupDescription:
    answer = await cluster.coordinated(
        CoordinatorKind.GROUP,
        group,
        ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False),
        ShareGroupDescribeResponse,
        code=lambda answer: answer.groups[0].error_code,
    )
    described = answer.groups[0]
    raise_if(f"group {group}", described.error_code, described.error_message)
    members = [
        GroupMember(
            one.member_id,
            None,
            one.client_id,
            one.client_host,
            _places((entry.topic_name, entry.partitions) for entry in one.assignment.topic_partitions),
        )
        for one in described.members
    ]
    return GroupDescription(group, SHARE, described.group_state, described.assignor_name, -1, members)


def _places(entries: Iterable[tuple[str, list[int]]]) -> list[TopicPartition]:
    return sorted(TopicPartition(topic, index) for topic, indexes in entries for index in indexes)


async def describe_all(cluster: ClusterClient, names: Iterable[str]) -> list[GroupDescription]:
    """Returns groups with their members, by name."""
    kinds = {listing.group: listing.type for listing in await list_groups(cluster)}
    for name in (names := list(names)):
        if name not in kinds:
            raise refusal(f"group {name}", ErrorCode.GROUP_ID_NOT_FOUND)
    return list(await asyncio.gather(*(describe_group(cluster, name, kinds[name]) for name in names)))
