"""Decides how many partitions the internal topics of a topology have.

A repartition topic has the count that the topology sets, or the largest count among the inputs of the subtopology that
writes it. The topics of a copartition group get the same count. A changelog has one partition per task. Source: Kafka's
RepartitionTopics, CopartitionedTopicsEnforcer and ChangelogTopics (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from coordinator.group.streams.status import MisconfiguredError, StatusCode
from coordinator.group.streams.topology import Subtopology, invalid
from protocol.java_hash import hash_map_order

Counts = Mapping[str, int]
"""Partition counts by topic name."""


class PartitionCounts:
    """The counts of existing topics, and the counts decided for internal topics. An existing topic keeps its count."""

    def __init__(self, existing: Counts) -> None:
        self._existing = existing
        self.decided: dict[str, int] = {}

    def of(self, name: str) -> int:
        """Returns the count of an existing topic, or of an internal topic whose count is decided."""
        return self._existing[name] if name in self._existing else self.decided[name]


def decide(subtopologies: Sequence[Subtopology], existing: Counts) -> PartitionCounts:
    """Returns the counts of all topics; all source topics exist. Raises MisconfiguredError, STREAMS_INVALID_TOPOLOGY.

    The result can depend on the order of the subtopologies. In Kafka's order, a group that moves between the brokers
    keeps its counts."""
    counts = PartitionCounts(existing)
    counts.decided |= repartition_counts(subtopologies, existing)
    enforce_copartitioning(subtopologies, counts)
    for subtopology in subtopologies:
        task_count = tasks_of(subtopology, counts)
        counts.decided.update((topic.name, task_count) for topic in subtopology.changelogs)
    return counts


def tasks_of(subtopology: Subtopology, counts: PartitionCounts) -> int:
    """Returns the number of tasks: the largest count of the inputs. Raises STREAMS_INVALID_TOPOLOGY."""
    task_count = max(map(counts.of, subtopology.inputs), default=0)
    if not task_count:
        raise invalid(f"No source topics found for subtopology {subtopology.subtopology_id}")
    return task_count


def repartition_counts(subtopologies: Sequence[Subtopology], existing: Counts) -> dict[str, int]:
    """Returns the count of each repartition topic before copartitioning. Raises STREAMS_INVALID_TOPOLOGY."""
    sources = [topic for subtopology in subtopologies for topic in subtopology.repartition_sources]
    decided = {topic.name: topic.partitions for topic in sources if topic.partitions}
    _pass_on(subtopologies, existing, decided)
    if any(sink not in decided for subtopology in subtopologies for sink in subtopology.repartition_sinks):
        raise invalid(
            "Failed to compute number of partitions for all repartition topics. There may be loops in the topology "
            "that cannot be resolved."
        )
    if any(topic.name not in decided for topic in sources):
        raise invalid(
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic is "
            "never used as a sink topic."
        )
    return decided


def _pass_on(subtopologies: Sequence[Subtopology], existing: Counts, decided: dict[str, int]) -> None:
    """Decides the count of each sink topic, from the inputs whose counts are known when its subtopology has its turn.

    Kafka visits all subtopologies in rounds until all counts are known. Here a subtopology without a known input waits
    until it gets one, and then has the turn that it has in Kafka: later in this round, or in the next."""
    readers: dict[str, list[int]] = {}
    known = []
    for position, subtopology in enumerate(subtopologies):
        for topic in subtopology.repartition_sources:
            readers.setdefault(topic.name, []).append(position)
        inputs = [existing.get(name, 0) for name in subtopology.source_topics]
        known.append(max([*inputs, *(decided.get(topic.name, 0) for topic in subtopology.repartition_sources), 0]))
    turns = [(1, position) for position in range(len(subtopologies))]
    heapify(turns)
    waiting: set[int] = set()
    while turns:
        turn, position = heappop(turns)
        if not known[position]:
            waiting.add(position)
            continue
        for sink in subtopologies[position].repartition_sinks:
            if sink in decided:
                continue
            decided[sink] = known[position]
            for reader in readers.get(sink, ()):
                known[reader] = max(known[reader], decided[sink])
                if reader in waiting:
                    waiting.remove(reader)
                    heappush(turns, (turn if reader > position else turn + 1, reader))


def enforce_copartitioning(subtopologies: Iterable[Subtopology], counts: PartitionCounts) -> None:
    """Gives the repartition topics of each copartition group the same count. Raises MisconfiguredError."""
    repartition_topics = [topic for subtopology in subtopologies for topic in subtopology.repartition_sources]
    fixed = {topic.name for topic in repartition_topics if topic.partitions}
    flexible = {topic.name for topic in repartition_topics if not topic.partitions}
    fixed_counts = set(map(counts.of, fixed))  # enforcing changes none of them
    for subtopology in subtopologies:
        for group in subtopology.copartitioned():
            repartition = {name: counts.of(name) for name in group if name in fixed or name in flexible}
            external = {name: counts.of(name) for name in group if name not in repartition}
            if not group:
                continue
            if external:
                count = _same(external.values(), external)
            elif fixed:  # as in Kafka, all fixed counts of the topology must be equal, not only those of the group
                count = _same(fixed_counts, repartition)
            else:
                count = max(repartition.values())
            _check_fixed(repartition, fixed, count)
            counts.decided.update(dict.fromkeys(repartition, count))


def _same(group_counts: Collection[int], shown: Counts) -> int:
    """Returns the only count."""
    different = set(group_counts)
    if len(different) > 1:
        listed = ", ".join(f"{name}={count}" for name, count in sorted(shown.items()))
        raise _incorrect(f"Following topics do not have the same number of partitions: [{{{listed}}}]")
    return different.pop()


def _check_fixed(repartition: Counts, fixed: Collection[str], count: int) -> None:
    different = {name for name, present in repartition.items() if name in fixed and present != count}
    for name in hash_map_order(repartition) if different else ():
        if name in different:
            raise _incorrect(
                f"Number of partitions [{repartition[name]}] of repartition topic [{name}] doesn't match number of "
                f"partitions [{count}] of the source topic."
            )


def _incorrect(detail: str) -> MisconfiguredError:
    return MisconfiguredError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
