"""Groups of every type: listed, described and deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from commands.client.cluster_client import ClusterClient, CoordinatorKind, outcome
from commands.errors import CommandError, explain, raise_if, refusal
from commands.printing import Row
from protocol import consumer_protocol
from protocol.consumer_protocol import ConsumerProtocolAssignment
from protocol.errors import ErrorCode, ProtocolError
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.describe_groups import DescribedGroupMember, DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    Topology,
)
from protocol.types import TopicPartition

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"
TYPES: Final = (CLASSIC, CONSUMER, SHARE, STREAMS)

ModernRequest = type[ConsumerGroupDescribeRequest] | type[ShareGroupDescribeRequest]
ModernResponse = type[ConsumerGroupDescribeResponse] | type[ShareGroupDescribeResponse]

MODERN: Final[dict[str, tuple[ModernRequest, ModernResponse]]] = {
    CONSUMER: (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
    SHARE: (ShareGroupDescribeRequest, ShareGroupDescribeResponse),
}
"""The group types whose coordinator assigns partitions (KIP-848, KIP-932), with the messages that describe them."""


class GroupListing(NamedTuple):
    """A group as its coordinator lists it."""

    group: str
    type: str
    state: str
    protocol: str
    coordinator: int


class GroupMember(NamedTuple):
    """A member with its assigned partitions."""

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
    epoch: int = -1
    """Changes with every rebalance; -1 for a classic group, because no API returns its generation."""


class GroupListings(NamedTuple):
    """The groups by name, and the errors of brokers that can't list the groups that they coordinate."""

    groups: list[GroupListing]
    errors: dict[int, str]


async def list_groups(cluster: ClusterClient) -> GroupListings:
    """Returns all groups of the cluster."""
    listings = GroupListings([], {})
    for node, answer in (await cluster.every(ListGroupsRequest(), ListGroupsResponse)).items():
        if isinstance(answer, CommandError) or answer.error_code:
            error = str(answer) if isinstance(answer, CommandError) else explain(answer.error_code)
            listings.errors[node] = f"groups of broker {node}: {error}"
        else:
            listings.groups.extend(_listed(node, answer))
    listings.groups.sort()
    return listings


def _listed(node: int, answer: ListGroupsResponse) -> list[GroupListing]:
    return [
        GroupListing(
            listed.group_id, (listed.group_type or CLASSIC).lower(), listed.group_state, listed.protocol_type, node
        )
        for listed in answer.groups
    ]


async def listing_of(cluster: ClusterClient, group: str) -> GroupListing | None:
    """Returns a group as its coordinator lists it, without asking other brokers; None if it doesn't exist. Raises
    CommandError."""
    answer = await cluster.coordinated(CoordinatorKind.GROUP, group, ListGroupsRequest(), ListGroupsResponse)
    raise_if(f"group {group}", answer.error_code)
    node = await cluster.coordinator(CoordinatorKind.GROUP, group)
    return next((listing for listing in _listed(node, answer) if listing.group == group), None)


async def describe_group(cluster: ClusterClient, group: str, kind: str | None = None) -> GroupDescription:
    """Returns a group with its members. Raises CommandError if it doesn't exist."""
    chosen = kind or await _type_of(cluster, group)
    if chosen == CLASSIC:
        description = await _classic(cluster, group)
    elif chosen in MODERN:
        description = await _modern(cluster, group, chosen)
    elif chosen == STREAMS:
        description = await _streams(cluster, group)
    else:
        raise CommandError(f"group {group} is a {chosen} group, which this command cannot describe")
    return description._replace(coordinator=await cluster.coordinator(CoordinatorKind.GROUP, group))


class GroupHead(Protocol):
    """The fields of a described group that all group types have."""

    @property
    def error_code(self) -> int: ...
    @property
    def error_message(self) -> str | None: ...


class GroupsAnswer(Protocol):
    """An answer that describes groups of any type."""

    @property
    def groups(self) -> Sequence[GroupHead]: ...


A = TypeVar("A", bound=GroupsAnswer)


async def _described(cluster: ClusterClient, group: str, request: object, response: type[A]) -> A:
    """Returns the coordinator's answer to a request for one group. Raises CommandError if the answer is an error."""
    answer = await cluster.coordinated(
        CoordinatorKind.GROUP, group, request, response, code=lambda answer: answer.groups[0].error_code
    )
    raise_if(f"group {group}", answer.groups[0].error_code, answer.groups[0].error_message)
    return answer


async def _classic(cluster: ClusterClient, group: str) -> GroupDescription:
    (described,) = (
        await _described(cluster, group, DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse)
    ).groups
    members = [
        GroupMember(member.member_id, member.group_instance_id, member.client_id, member.client_host, _assigned(member))
        for member in described.members
    ]
    return GroupDescription(group, CLASSIC, described.group_state, described.protocol_data, -1, members)


def _assigned(member: DescribedGroupMember) -> list[TopicPartition]:
    """Returns a classic member's partitions; none if its assignment is not a consumer's."""
    if not member.member_assignment:
        return []
    try:
        assignment = consumer_protocol.read(ConsumerProtocolAssignment, member.member_assignment)
    except ProtocolError:
        return []
    return _places((entry.topic, entry.partitions) for entry in assignment.assigned_partitions)


async def _modern(cluster: ClusterClient, group: str, kind: str) -> GroupDescription:
    request, response = MODERN[kind]
    query = request(group_ids=[group], include_authorized_operations=False)
    (described,) = (await _described(cluster, group, query, response)).groups
    members = [
        GroupMember(
            member.member_id,
            getattr(member, "instance_id", None),  # a member of a share group has none
            member.client_id,
            member.client_host,
            _places((entry.topic_name, entry.partitions) for entry in member.assignment.topic_partitions),
        )
        for member in described.members
    ]
    return GroupDescription(
        group, kind, described.group_state, described.assignor_name, -1, members, described.group_epoch
    )


async def _streams(cluster: ClusterClient, group: str) -> GroupDescription:
    """Returns a streams group, whose members have the partitions that their active tasks read."""
    query = StreamsGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    (described,) = (await _described(cluster, group, query, StreamsGroupDescribeResponse)).groups
    inputs = _inputs(described.topology)
    metadata = await cluster.metadata({topic for topics in inputs.values() for topic in topics})
    counts = {topic.name: len(topic.partitions) for topic in metadata.topics}
    members = [
        GroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            _places(
                (topic, [index for index in entry.partitions if index < counts.get(topic, 0)])
                for entry in member.assignment.active_tasks
                for topic in inputs.get(entry.subtopology_id, ())
            ),
        )
        for member in described.members
    ]
    assignor = described.assignor_name or ""
    return GroupDescription(group, STREAMS, described.group_state, assignor, -1, members, described.group_epoch)


def _inputs(topology: Topology | None) -> dict[str, list[str]]:
    """Returns the topics that the tasks of each subtopology read."""
    return {
        subtopology.subtopology_id: [
            *subtopology.source_topics,
            *(topic.name for topic in subtopology.repartition_source_topics),
        ]
        for subtopology in (topology.subtopologies if topology is not None else None) or ()
    }


def _places(entries: Iterable[tuple[str, Iterable[int]]]) -> list[TopicPartition]:
    return sorted(TopicPartition(topic, index) for topic, indexes in entries for index in indexes)


async def _type_of(cluster: ClusterClient, group: str) -> str:
    listing = await listing_of(cluster, group)
    if listing is None:
        raise refusal(f"group {group}", ErrorCode.GROUP_ID_NOT_FOUND)
    return listing.type


async def describe_all(cluster: ClusterClient, names: Iterable[str]) -> dict[str, GroupDescription | CommandError]:
    """Returns groups with their members, or the error of a group that can't be described, by name. Asks only their
    coordinators."""
    names = list(dict.fromkeys(names))
    described = await cluster.together(outcome(describe_group(cluster, name)) for name in names)
    return dict(zip(names, described, strict=True))


async def delete_group(cluster: ClusterClient, name: str) -> Row:
    """Deletes a group. Returns a row with the result."""
    answer = await cluster.coordinated(
        CoordinatorKind.GROUP,
        name,
        DeleteGroupsRequest(groups_names=[name]),
        DeleteGroupsResponse,
        code=lambda answer: answer.results[0].error_code,
    )
    result = answer.results[0]
    if result.error_code:
        return {"group": name, "error": explain(result.error_code, result.error_message)}
    return {"group": name, "result": "deleted"}
