"""Groups of consumers that meet in ZooKeeper (Kafka 0.8 to 1.1): who reads what, by their own algorithm. Pure.

Source: kafka.consumer.ZookeeperConsumerConnector, TopicCount, RangeAssignor.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from protocol.types import TopicPartition

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that a pattern never matches (exclude.internal.topics)."""


class OldMember(NamedTuple):
    """A consumer as it has registered: how many threads it has for each topic, or for what a pattern matches."""

    consumer_id: str
    pattern: str
    """static, white_list or black_list."""
    subscription: Mapping[str, int]

    def threads(self, topics: Collection[str]) -> dict[str, list[str]]:
        """Returns the ids of its threads by topic."""
        streams = self.subscription if self.pattern == "static" else self._matched(topics)
        return {
            topic: [f"{self.consumer_id}-{number}" for number in range(count)]
            for topic, count in streams.items()
            if topic in topics
        }

    def _matched(self, topics: Collection[str]) -> dict[str, int]:
        import re2  # only patterns need it

        streams: dict[str, int] = {}
        for raw, count in self.subscription.items():
            expression = raw.strip().replace(",", "|").replace(" ", "").strip("\"'")
            pattern = re2.compile(expression)
            wanted_match = self.pattern == "white_list"
            for topic in topics:
                if topic not in INTERNAL_TOPICS and (pattern.fullmatch(topic) is not None) is wanted_match:
                    streams[topic] = count
        return streams


def member(consumer_id: str, data: bytes) -> OldMember:
    """Returns the consumer of a znode in /consumers/G/ids. Raises ValueError."""
    value = json.loads(data)
    subscription = value.get("subscription") if isinstance(value, dict) else None
    if not isinstance(subscription, dict) or not all(type(count) is int for count in subscription.values()):
        raise ValueError("has no subscription")
    return OldMember(consumer_id, str(value.get("pattern", "static")), subscription)


def owners_by_range(members: Iterable[OldMember], partitions: Mapping[str, Sequence[int]]) -> dict[TopicPartition, str]:
    """Returns the thread that each partition falls to: of each topic the sorted threads get equal runs of its
    partitions, the first ones one more where they do not come out even."""
    threads: dict[str, list[str]] = {}
    for one in members:
        for topic, names in one.threads(partitions.keys()).items():
            threads.setdefault(topic, []).extend(names)
    owners: dict[TopicPartition, str] = {}
    for topic, names in threads.items():
        for thread, run in runs(sorted(names), sorted(partitions[topic])):
            owners |= {TopicPartition(topic, index): thread for index in run}
    return owners


def runs(threads: Sequence[str], partitions: Sequence[int]) -> Iterable[tuple[str, Sequence[int]]]:
    """Yields each thread's run of partitions."""
    least, extra = divmod(len(partitions), len(threads))
    start = 0
    for number, thread in enumerate(threads):
        end = start + least + (number < extra)
        yield thread, partitions[start:end]
        start = end


class MigrationStep(NamedTuple):
    """One partition of a migration: its offsets in the source and in the target, and what is to be done."""

    partition: TopicPartition
    source: int | None
    target: int | None
    action: str

    @property
    def writes(self) -> bool:
        return self.action in (COPY, ADVANCE)


COPY, ADVANCE, SAME, AHEAD, NOTHING, GONE = "copy", "advance", "same", "target is ahead", "target only", "no partition"


def plan(
    source: Mapping[TopicPartition, int], target: Mapping[TopicPartition, int], existing: Collection[TopicPartition]
) -> list[MigrationStep]:
    """Returns what a migration does. The larger offset counts, as for a consumer with dual.commit.enabled: a migration
    that was cut short, or is repeated, goes on where it was, and none takes a group back."""
    return [
        MigrationStep(one, source.get(one), target.get(one), _action(source.get(one), target.get(one), one in existing))
        for one in sorted({*source, *target})
    ]


def _action(source: int | None, target: int | None, is_there: bool) -> str:
    if not is_there:
        return GONE
    if source is None:
        return NOTHING
    if target is None:
        return COPY
    return SAME if source == target else ADVANCE if source > target else AHEAD
