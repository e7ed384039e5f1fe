"""Decides which offsets a job reads, before it starts: from its options, the loaded offsets, and the topic's offsets.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from cli.times import parse_time
from pipeline.errors import LostRange, PipelineError, TopicChanged
from pipeline.topics import PartitionName, TopicDescription

EARLIEST = -2
LATEST = -1
"""Kafka's numbers for earliest and latest, which Spark's JSON of offsets uses too."""

NAMED: Final = {"start": EARLIEST, "beginning": EARLIEST, "earliest": EARLIEST, "end": LATEST, "latest": LATEST}


class Range(NamedTuple):
    """Offsets of a partition, `end` excluded.

    Some offsets may have no record, because of transaction markers and compaction.
    """

    topic: str
    partition: int
    start: int
    end: int

    @property
    def key(self) -> PartitionName:
        return PartitionName(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} offsets {self.start} to {self.end - 1}"


@dataclass(frozen=True, slots=True)
class RangeBounds:
    """The start or the end of ranges. At most one field is set; none means `continue` for a start and `latest` for an
    end.
    """

    named: int | None = None
    offsets: Mapping[PartitionName, int] | None = None
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AcceptedLosses:
    """The losses that are accepted; other losses end the job."""

    lost: bool = False
    new_partitions: bool = False
    recreated: bool = False


@dataclass(frozen=True, slots=True)
class LoadedTopic:
    """A topic in the store: its id, and for each partition the offset to continue from."""

    topic_id: str
    next_offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class ClusterOffsets:
    """The partitions' offsets in the cluster: first offsets, end offsets, and the offsets of timestamps."""

    first: Mapping[PartitionName, int]
    end: Mapping[PartitionName, int]
    starting_at: Mapping[PartitionName, int]
    ending_at: Mapping[PartitionName, int]


def parse_offsets(text: str) -> dict[PartitionName, int]:
    """Parses Spark's JSON of offsets, {"topic": {"0": 23, "1": -2}}. Raises PipelineError."""
    try:
        given = json.loads(text)
        return {
            PartitionName(topic, int(number)): int(at)
            for topic, partitions in given.items()
            for number, at in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise PipelineError(
            f'{text!r} is not start, end, @TIME, or JSON of offsets such as {{"clicks": {{"0": 23, "1": -2}}}}'
        ) from None


def to_json(offsets: Mapping[PartitionName, int]) -> str:
    """Returns the JSON of offsets, for Spark."""
    grouped: dict[str, dict[str, int]] = {}
    for key, offset in sorted(offsets.items()):
        grouped.setdefault(key.topic, {})[str(key.partition)] = offset
    return json.dumps(grouped)


def parse_bounds(position: str | None, now_ms: int) -> RangeBounds:
    """Returns the bounds of a position: start, end, @TIME, or JSON of offsets; no bounds without a position. Raises
    PipelineError."""
    if position is None:
        return RangeBounds()
    if position in NAMED:
        return RangeBounds(named=NAMED[position])
    if position.startswith("@"):
        return RangeBounds(at_ms=parse_moment(position[1:], now_ms))
    return RangeBounds(offsets=parse_offsets(position))


def parse_moment(text: str, now_ms: int) -> int:
    """Returns the milliseconds of a time. Raises PipelineError."""
    try:
        return parse_time(text, now_ms)
    except ValueError as error:
        raise PipelineError(str(error)) from None


def parse_at(option: str, position: str | None, now_ms: int) -> int | None:
    """Returns the milliseconds of a position that must be @TIME. Raises PipelineError."""
    if position is None:
        return None
    if not position.startswith("@"):
        raise PipelineError(f"{option} {position}: expected @TIME, such as @2026-01-31T12:00")
    return parse_moment(position[1:], now_ms)


def check_topics(
    topics: Iterable[TopicDescription],
    loaded: Mapping[str, LoadedTopic],
    accepted: AcceptedLosses,
    offsets: ClusterOffsets,
) -> None:
    """Raises TopicChanged for a topic that was recreated since it was loaded, or has new partitions."""
    for topic in topics:
        before = loaded.get(topic.name)
        if before is None:
            continue
        if before.topic_id != topic.id:
            if not accepted.recreated:
                raise TopicChanged(_recreated(topic, before, offsets))
            continue
        new = [key for key in topic.partition_keys() if key.partition not in before.next_offsets]
        if new and not accepted.new_partitions:
            raise TopicChanged(_grown(topic, before, new, offsets))


def _recreated(topic: TopicDescription, before: LoadedTopic, offsets: ClusterOffsets) -> str:
    had = ", ".join(f"{topic.name}-{number} up to {end - 1}" for number, end in sorted(before.next_offsets.items()))
    has = ", ".join(f"{key} {offsets.first[key]} to {offsets.end[key] - 1}" for key in topic.partition_keys())
    return (
        f"{topic.name} was deleted and created again: its id is {topic.id}, loaded was {before.topic_id}. "
        f"Loaded: {had}. The topic has: {has}. Load it elsewhere, or with --accept-recreated, which drops the former"
    )


def _grown(topic: TopicDescription, before: LoadedTopic, new: Sequence[PartitionName], offsets: ClusterOffsets) -> str:
    has = ", ".join(f"{key} (offsets {offsets.first[key]} to {offsets.end[key] - 1})" for key in new)
    return (
        f"{topic.name} has {len(topic.partitions)} partitions, {len(before.next_offsets)} when loaded; new: {has}. "
        "A key may be in another partition now. --accept-new-partitions loads them from their start"
    )


def plan(
    topics: Sequence[TopicDescription],
    offsets: ClusterOffsets,
    loaded: Mapping[str, LoadedTopic],
    starting: RangeBounds,
    ending: RangeBounds,
    accepted: AcceptedLosses,
) -> list[Range]:
    """Returns one range for each partition with offsets to read. Raises LostRange, TopicChanged, PipelineError."""
    check_topics(topics, loaded, accepted, offsets)
    ranges = []
    for topic in topics:
        before = loaded.get(topic.name)
        next_offsets = before.next_offsets if before is not None and before.topic_id == topic.id else {}
        for key in topic.partition_keys():
            start = _start(key, offsets, next_offsets, starting, accepted)
            end = _end(key, offsets, ending)
            if start < end:
                ranges.append(Range(*key, start, end))
    return ranges


def _start(
    key: PartitionName,
    offsets: ClusterOffsets,
    next_offsets: Mapping[int, int],
    bounds: RangeBounds,
    accepted: AcceptedLosses,
) -> int:
    first, end = offsets.first[key], offsets.end[key]
    start = next_offsets.get(key.partition, first)
    if bounds.at_ms is not None:
        start = offsets.starting_at[key]
    elif bounds.offsets is not None:
        start = _named(bounds.offsets.get(key, end), first, end)
    elif bounds.named is not None:
        start = _named(bounds.named, first, end)
    if start > end:
        raise PipelineError(f"{key}: offset {start} is requested, but the partition ends with {end - 1}")
    if start < first:
        if not accepted.lost:
            raise LostRange(
                f"{key}: offsets {start} to {first - 1} are lost: retention or DeleteRecords removed them. The "
                f"partition now begins with {first}. --accept-lost loads the rest"
            )
        start = first
    return start


def _end(key: PartitionName, offsets: ClusterOffsets, bounds: RangeBounds) -> int:
    first, end = offsets.first[key], offsets.end[key]
    requested = end
    if bounds.at_ms is not None:
        requested = offsets.ending_at[key]
    elif bounds.offsets is not None:
        requested = _named(bounds.offsets.get(key, first), first, end)
    elif bounds.named is not None:
        requested = _named(bounds.named, first, end)
    if requested > end:
        raise PipelineError(
            f"{key}: offsets up to {requested - 1} are requested, but the partition ends with {end - 1}"
        )
    return requested


def _named(offset: int, first: int, end: int) -> int:
    return {EARLIEST: first, LATEST: end}.get(offset, offset)
