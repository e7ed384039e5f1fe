"""Moves of replicas between brokers over all topics: plans, their start, and their progress (KIP-455)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from commands.client.cluster_client import ClusterClient
from commands.errors import CommandError, explain, misuse, raise_if
from commands.printing import Row
from commands.records.positions import Errors
from commands.state.replica_plan import spread
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from protocol.messages.metadata import MetadataResponseTopic
from protocol.types import TopicPartition

POLL_MS: Final = 1000
"""Time between two looks at the reassignments in progress."""


class Move(NamedTuple):
    """A partition's replicas before and after."""

    before: list[int]
    after: list[int]


Moves = dict[TopicPartition, Move]


class BrokerSet(NamedTuple):
    """The brokers of a cluster."""

    active: set[int]
    fenced: set[int]
    racks: dict[int, str | None]


def balanced(topics: Iterable[MetadataResponseTopic], brokers: BrokerSet) -> Moves:
    """Returns the moves that spread the replicas and the preferred leaders of all topics evenly over the active
    brokers, with few moves. A move that would put a partition's replicas into fewer racks is left out. Raises
    ValueError if a partition has more replicas than there are brokers."""
    places = _replicas(topics)
    after = spread(dict(enumerate(places.values())), sorted(brokers.active))
    moves = {place: Move(before, after[number]) for number, (place, before) in enumerate(places.items())}
    return {
        place: move
        for place, move in moves.items()
        if move.before != move.after and _racks(move.after, brokers) >= _racks(move.before, brokers)
    }


def without(topics: Iterable[MetadataResponseTopic], leaving: int, brokers: BrokerSet) -> Moves:
    """Returns the moves after which a broker has no replicas: each goes to the active broker with the fewest replicas,
    in a rack of its own if possible. Raises ValueError if a partition has too many replicas for the other brokers."""
    places = _replicas(topics)
    loads = Counter(broker for replicas in places.values() for broker in replicas)
    moves: Moves = {}
    for place, before in places.items():
        if leaving not in before:
            continue
        staying = [broker for broker in before if broker != leaving]
        free = brokers.active - {leaving, *staying}
        if not free:
            raise ValueError(f"{place} has {len(before)} replicas, which need as many other active brokers")
        used = {brokers.racks.get(broker) for broker in staying}
        target = min(free, key=lambda broker: (brokers.racks.get(broker) in used, loads[broker], broker))
        loads[target] += 1
        moves[place] = Move(before, [target if broker == leaving else broker for broker in before])
    return moves


def _replicas(topics: Iterable[MetadataResponseTopic]) -> dict[TopicPartition, list[int]]:
    """Returns the replicas of all partitions, in the order of topics and partitions."""
    return dict(
        sorted(
            (TopicPartition(topic.name or "", partition.partition_index), list(partition.replica_nodes))
            for topic in topics
            for partition in topic.partitions
        )
    )


def _racks(replicas: Iterable[int], brokers: BrokerSet) -> int:
    return len({brokers.racks.get(broker) for broker in replicas})


async def start(cluster: ClusterClient, moves: Mapping[TopicPartition, Move]) -> Errors:
    """Starts moves. Returns the errors of partitions that were rejected. Raises CommandError."""
    return await alter_replicas(cluster, {place: move.after for place, move in moves.items()})


async def alter_replicas(cluster: ClusterClient, plan: Mapping[TopicPartition, list[int] | None]) -> Errors:
    """Starts reassignments, or cancels those whose replicas are None. Returns the errors of partitions that were
    rejected. Raises CommandError."""
    topics: dict[str, list[ReassignablePartition]] = {}
    for (topic, index), replicas in sorted(plan.items()):
        entry = ReassignablePartition(partition_index=index, replicas=replicas)
        topics.setdefault(topic, []).append(entry)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=cluster.timeout_ms,
        topics=[ReassignableTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )
    answer = await cluster.controller(request, AlterPartitionReassignmentsResponse)
    raise_if("the moves", answer.error_code, answer.error_message)
    return {
        TopicPartition(entry.name, partition.partition_index): explain(partition.error_code, partition.error_message)
        for entry in answer.responses
        for partition in entry.partitions
        if partition.error_code
    }


async def in_progress(cluster: ClusterClient) -> set[TopicPartition]:
    """Returns the partitions that are being moved. Raises CommandError."""
    return {*await ongoing(cluster, None)}


async def ongoing(cluster: ClusterClient, topic: MetadataResponseTopic | None) -> dict[TopicPartition, Row]:
    """Returns a row for each partition that has a reassignment in progress, of one topic or of all. Raises
    CommandError."""
    named = None
    if topic is not None:
        indexes = [partition.partition_index for partition in topic.partitions]
        named = [ListPartitionReassignmentsTopics(name=topic.name or "", partition_indexes=indexes)]
    request = ListPartitionReassignmentsRequest(timeout_ms=cluster.timeout_ms, topics=named)
    answer = await cluster.controller(request, ListPartitionReassignmentsResponse)
    raise_if("reassignments" if topic is None else f"topic {topic.name}", answer.error_code, answer.error_message)
    return {
        TopicPartition(entry.name, partition.partition_index): {
            "topic": entry.name,
            "partition": partition.partition_index,
            "replicas": partition.replicas,
            "adding": partition.adding_replicas,
            "removing": partition.removing_replicas,
        }
        for entry in answer.topics
        for partition in sorted(entry.partitions, key=lambda moving: moving.partition_index)
    }


async def copied_shares(
    cluster: ClusterClient, topic: MetadataResponseTopic, moves: Mapping[TopicPartition, Row]
) -> dict[TopicPartition, float]:
    """Returns how much of each moving partition the slowest new replica has, from 0 to 1, by the bytes that the brokers
    report. Leaves out partitions whose leader doesn't report them."""
    name = topic.name or ""
    request = DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=name, partitions=sorted(place.partition for place in moves))]
    )
    sizes: dict[tuple[int, int], int] = {}
    for node, answer in (await cluster.every(request, DescribeLogDirsResponse)).items():
        if not isinstance(answer, CommandError):
            for part in (part for entry in answer.results for held in entry.topics for part in held.partitions):
                sizes[node, part.partition_index] = part.partition_size
    shares: dict[TopicPartition, float] = {}
    for part_ in topic.partitions:
        place, whole = TopicPartition(name, part_.partition_index), sizes.get((part_.leader_id, part_.partition_index))
        adding = moves[place]["adding"] if place in moves else None
        if whole is not None and isinstance(adding, list) and adding:
            least = min(sizes.get((node, place.partition), 0) for node in adding)
            shares[place] = min(least / whole, 1.0) if whole else 1.0
    return shares


def brokers_of(option: str, text: str, expected: str) -> list[int]:
    """Returns the brokers of a list such as "1,2". Raises CommandError."""
    words = text.split(",")
    if not all(word.strip().isascii() and word.strip().isdecimal() and len(word) < 12 for word in words):
        raise misuse(f"{option}: {expected}")
    brokers = [int(word) for word in words]
    if len(set(brokers)) < len(brokers):
        raise misuse(f"{option}: a broker is named twice")
    return brokers
