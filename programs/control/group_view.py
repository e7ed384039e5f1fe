"""The groups that this broker coordinates: members with their partitions, and offsets with lags."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from broker.dispatch.broker import Broker
from coordinator.group.consumer import describe as consumer_groups
from coordinator.group.group import Group, GroupType
from coordinator.group.groups import describe_classic
from coordinator.group.shard import GroupShard
from coordinator.group.share import describe as share_groups
from coordinator.group.state import Client
from programs.control.http import RequestError
from protocol import consumer_protocol
from protocol.errors import KafkaError, ProtocolError
from protocol.messages.consumer_group_describe import Assignment as ConsumerAssignment
from protocol.messages.describe_groups import DescribedGroupMember
from protocol.messages.share_group_describe import Assignment as ShareAssignment

DESCRIBE_VERSION: Final = 6


class MemberRow(NamedTuple):
    """A member's description for JSON."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[dict[str, object]]


def list_groups(broker: Broker) -> list[dict[str, object]]:
    """Returns the groups that this broker coordinates."""
    return [
        {"group": group_id, "type": group.type.value, "state": group.state_name}
        for shard in list(broker.groups.shards.values())
        for group_id, group in list(shard.state.groups.items())
    ]


async def describe_group(broker: Broker, group_id: str) -> dict[str, object]:
    """Returns one group. Raises RequestError."""
    shard = shard_of(broker, group_id)
    group = shard.state.groups.get(group_id)
    if group is None:
        raise RequestError(404, f"there is no group {group_id}")
    try:
        protocol, members = await members_of(broker, group_id, group)
        is_share = group.type is GroupType.SHARE
        offsets = share_offsets(broker, group_id) if is_share else offsets_of(broker, shard, group_id)
    except KafkaError as error:
        raise RequestError(409, f"group {group_id}: {error}") from None
    lags = [row["lag"] for row in offsets]
    return {
        "group": group_id,
        "type": group.type.value,
        "state": group.state_name,
        "protocol": protocol,
        "members": [member._asdict() for member in members],
        "offsets": offsets,
        "lag": sum(lag for lag in lags if isinstance(lag, int)),
    }


def shard_of(broker: Broker, group_id: str) -> GroupShard:
    """Returns the shard that has a group. Raises RequestError."""
    groups = broker.groups
    topic = broker.image.topic(groups.topic.name)
    if topic is None:
        raise RequestError(404, f"there is no group {group_id}: no client has asked for one yet")
    index = groups.partition_of(group_id)
    shard = groups.shards.get(index)
    if shard is None:
        partition = topic.partitions.get(index)
        leader = -1 if partition is None else partition.leader
        where = "is loading" if leader == broker.node.node_id else f"is broker {leader}"
        raise RequestError(409, f"the coordinator of group {group_id} {where}")
    return shard


async def members_of(broker: Broker, group_id: str, group: Group) -> tuple[str, list[MemberRow]]:
    """Returns the protocol or assignor of a group, and its members."""
    client = Client(version=DESCRIBE_VERSION)
    if group.type is GroupType.CLASSIC:
        (classic,) = await broker.groups.submit(group_id, describe_classic, [group_id], client)
        return classic.protocol_data, [classic_member(member) for member in classic.members]
    if group.type is GroupType.CONSUMER:
        consumer = await broker.groups.submit(group_id, consumer_groups.describe, group_id, client)
        return consumer.assignor_name, [
            MemberRow(
                member.member_id, member.instance_id, member.client_id, member.client_host, assigned(member.assignment)
            )
            for member in consumer.members
        ]
    share = await broker.groups.submit(group_id, share_groups.describe, group_id, client)
    return share.assignor_name, [
        MemberRow(member.member_id, None, member.client_id, member.client_host, assigned(member.assignment))
        for member in share.members
    ]


def classic_member(member: DescribedGroupMember) -> MemberRow:
    """Returns a classic member. Its partitions are known only for consumers."""
    try:
        assignment = consumer_protocol.read(consumer_protocol.ConsumerProtocolAssignment, member.member_assignment)
        partitions = rows((topic.topic, topic.partitions) for topic in assignment.assigned_partitions)
    except ProtocolError:
        partitions = []
    return MemberRow(member.member_id, member.group_instance_id, member.client_id, member.client_host, partitions)


def assigned(assignment: ConsumerAssignment | ShareAssignment) -> list[dict[str, object]]:
    """Returns the partitions of an assignment."""
    return rows((topic.topic_name, topic.partitions) for topic in assignment.topic_partitions)


def rows(topics: Iterable[tuple[str, Iterable[int]]]) -> list[dict[str, object]]:
    """Returns partitions, sorted."""
    pairs = sorted((topic, partition) for topic, partitions in topics for partition in partitions)
    return [{"topic": topic, "partition": partition} for topic, partition in pairs]


def offsets_of(broker: Broker, shard: GroupShard, group_id: str) -> list[dict[str, object]]:
    """Returns the offsets that a group has committed."""
    return [
        offset_row(broker, topic, index, committed.offset)
        for topic, partitions in sorted(shard.state.offsets.of_group(group_id).items())
        for index, committed in sorted(partitions.items())
    ]


def share_offsets(broker: Broker, group_id: str) -> list[dict[str, object]]:
    """Returns the start offsets of a share group's partitions that are active on this broker."""
    at_work = [
        (topic, key.partition, hosted)
        for key, hosted in broker.share_groups.at_work()
        if key.group_id == group_id and (topic := broker.replicas.name_of(key.topic_id)) is not None
    ]
    at_work.sort(key=lambda entry: entry[:2])
    return [
        {**offset_row(broker, topic, index, hosted.engine.start_offset), "lag": hosted.lag}
        for topic, index, hosted in at_work
    ]


def offset_row(broker: Broker, topic: str, index: int, offset: int) -> dict[str, object]:
    """Returns an offset, with the partition's end if this broker has a replica."""
    partition = broker.replicas.topic(topic).get(index)
    end = None if partition is None else partition.high_watermark
    lag = None if end is None else max(end - offset, 0)
    return {"topic": topic, "partition": index, "offset": offset, "end_offset": end, "lag": lag}
