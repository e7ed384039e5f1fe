"""Which offsets a job reads: decided before it starts, from what was asked, what was loaded and what the topic has.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from pipeline.errors import LostRange, PipelineError, TopicChanged
from pipeline.topics import Partition, Topic

EARLIEST = -2
LATEST = -1
"""Kafka's own numbers for the two, as Spark's JSON of offsets has them too."""


class Range(NamedTuple):
    """Offsets of a partition, `end` excluded.

    Not each of them has to be a record: markers and compaction leave gaps.
    """

    topic: str
    partition: int
    start: int
    end: int

    @property
    def key(self) -> Partition:
        return Partition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} offsets {self.start} to {self.end - 1}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where ranges begin or end. At most one is given; none is `continue` for a start and `latest` for an end."""

    named: int | None = None
    offsets: Mapping[Partition, int] | None = None
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """What would end a job unless it was accepted."""

    lost: bool = False
    new_partitions: bool = False
    recreated: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the store has of a topic: its id, and per partition the offset to continue from."""

    topic_id: str
    next_offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Offsets:
    """What the cluster says of the partitions: first and end offsets, and those that a timestamp stands for."""

    first: Mapping[Partition, int]
    end: Mapping[Partition, int]
    starting_at: Mapping[Partition, int]
    ending_at: Mapping[Partition, int]


def parse_offsets(text: str) -> dict[Partition, int]:
    """Spark's JSON of offsets, {"topic": {"0": 23, "1": -2}}. Raises PipelineError."""
    try:
        given = json.loads(text)
        return {Partition(topic, int(number)): int(at) for topic, each in given.items() for number, at in each.items()}
    except (ValueError, AttributeError, TypeError):
        raise PipelineError(f'{text!r} is no JSON of offsets, like {{"clicks": {{"0": 23, "1": -2}}}}') from None


def to_json(offsets: Mapping[Partition, int]) -> str:
    """The same JSON, for Spark."""
    grouped: dict[str, dict[str, int]] = {}
    for key, offset in sorted(offsets.items()):
        grouped.setdefault(key.topic, {})[str(key.partition)] = offset
    return json.dumps(grouped)


def parse_time(text: str) -> int:
    """Milliseconds of an ISO 8601 time (UTC unless it says otherwise), or of a number of milliseconds.

    Raises PipelineError.
    """
    if text.isdigit():
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise PipelineError(f"{text!r} is no time, like 2026-01-31T12:00 or 1769860800000") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def check_topics(topics: Iterable[Topic], loaded: Mapping[str, Loaded], accepted: Accepted, offsets: Offsets) -> None:
    """Raises TopicChanged for a topic that is not the one that was loaded, or has partitions that it did not have."""
    for topic in topics:
        before = loaded.get(topic.name)
        if before is None:
            continue
        if before.topic_id != topic.id:
            if not accepted.recreated:
                raise TopicChanged(_recreated(topic, before, offsets))
            continue
        new = [key for key in topic.each() if key.partition not in before.next_offsets]
        if new and not accepted.new_partitions:
            raise TopicChanged(_grown(topic, before, new, offsets))


def _recreated(topic: Topic, before: Loaded, offsets: Offsets) -> str:
    had = ", ".join(f"{topic.name}-{number} up to {end - 1}" for number, end in sorted(before.next_offsets.items()))
    has = ", ".join(f"{key} {offsets.first[key]} to {offsets.end[key] - 1}" for key in topic.each())
    return (
        f"{topic.name} was deleted and created again: its id is {topic.id}, loaded was {before.topic_id}. "
        f"Loaded: {had}. The topic has: {has}. Load it elsewhere, or with --accept-recreated, which drops the former"
    )


def _grown(topic: Topic, before: Loaded, new: Sequence[Partition], offsets: Offsets) -> str:
    has = ", ".join(f"{key} (offsets {offsets.first[key]} to {offsets.end[key] - 1})" for key in new)
    return (
        f"{topic.name} has {len(topic.partitions)} partitions, {len(before.next_offsets)} when loaded; new: {has}. "
        "A key may be in another partition now. --accept-new-partitions loads them from their start"
    )


def plan(
    topics: Sequence[Topic],
    offsets: Offsets,
    loaded: Mapping[str, Loaded],
    starting: Bounds,
    ending: Bounds,
    accepted: Accepted,
) -> list[Range]:
    """One range per partition with something to read. Raises LostRange, TopicChanged, PipelineError."""
    check_topics(topics, loaded, accepted, offsets)
    ranges = []
    for topic in topics:
        before = loaded.get(topic.name)
        known = before.next_offsets if before is not None and before.topic_id == topic.id else {}
        for key in topic.each():
            start = _start(key, offsets, known, starting, accepted)
            end = _end(key, offsets, ending)
            if start < end:
                ranges.append(Range(*key, start, end))
    return ranges


def _start(key: Partition, offsets: Offsets, known: Mapping[int, int], bounds: Bounds, accepted: Accepted) -> int:
    first, end = offsets.first[key], offsets.end[key]
    start = known.get(key.partition, first)
    if bounds.at_ms is not None:
        start = offsets.starting_at[key]
    elif bounds.offsets is not None:
        start = _named(bounds.offsets.get(key, end), first, end)
    elif bounds.named is not None:
        start = _named(bounds.named, first, end)
    if start > end:
        raise PipelineError(f"{key}: offset {start} is asked for, but the partition ends with {end - 1}")
    if start < first:
        if not accepted.lost:
            raise LostRange(
                f"{key}: offsets {start} to {first - 1} are lost, the partition begins with {first} now: retention or "
                "a deletion of records passed them. --accept-lost loads what is left"
            )
        start = first
    return start


def _end(key: Partition, offsets: Offsets, bounds: Bounds) -> int:
    first, end = offsets.first[key], offsets.end[key]
    wanted = end
    if bounds.at_ms is not None:
        wanted = offsets.ending_at[key]
    elif bounds.offsets is not None:
        wanted = _named(bounds.offsets.get(key, first), first, end)
    elif bounds.named is not None:
        wanted = _named(bounds.named, first, end)
    if wanted > end:
        raise PipelineError(f"{key}: offsets up to {wanted - 1} are asked for, but the partition ends with {end - 1}")
    return wanted


def _named(offset: int, first: int, end: int) -> int:
    return {EARLIEST: first, LATEST: end}.get(offset, offset)
