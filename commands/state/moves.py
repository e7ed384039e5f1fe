"""Moves of replicas between brokers over all topics: plans, their start, and their progress (KIP-455)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from commands.client.cluster_client import ClusterClient
from commands.errors import explain, raise_if
from commands.records.positions import Errors
from commands.state.replica_plan import spread
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
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
    topics: dict[str, list[ReassignablePartition]] = {}
    for (topic, index), move in sorted(moves.items()):
        entry = ReassignablePartition(partition_index=index, replicas=move.after)
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
    request = ListPartitionReassignmentsRequest(timeout_ms=cluster.timeout_ms, topics=None)
    answer = await cluster.controller(request, ListPartitionReassignmentsResponse)
    raise_if("reassignments", answer.error_code, answer.error_message)
    return {
        TopicPartition(entry.name, partition.partition_index)
        for entry in answer.topics
        for partition in entry.partitions
    }
