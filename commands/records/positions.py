"""Positions in partitions: parses them and finds their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from cli.times import parse_time
from commands.client.cluster_client import ClusterClient, outcome
from commands.errors import CommandError, explain
from protocol.errors import RETRIABLE, ErrorCode, error_code
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.types import TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2
"""The timestamps with which ListOffsets returns the end and the start of a log."""

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1

EXPECTED: Final = "start, end, an offset, +N after the start, -N before the end, or @TIME (@-15m, @2026-01-31T12:00:00)"

Offsets = dict[TopicPartition, int]
Errors = dict[TopicPartition, str]


class PositionKind(Enum):
    START = "start"
    END = "end"
    OFFSET = "offset"
    AFTER_START = "after the start"
    BEFORE_END = "before the end"
    TIME = "time"


class Position(NamedTuple):
    """A position in any partition; `number` is an offset, a count of offsets, or milliseconds since the epoch."""

    kind: PositionKind
    number: int = 0


START: Final = Position(PositionKind.START)
END: Final = Position(PositionKind.END)

WORDS: Final = {"start": START, "beginning": START, "earliest": START, "end": END, "latest": END}


def parse_position(text: str, now_ms: int) -> Position:
    """Returns the position that a text names. Raises ValueError."""
    if text in WORDS:
        return WORDS[text]
    if text.startswith("@"):
        return Position(PositionKind.TIME, parse_time(text[1:], now_ms))
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdecimal() and int(digits) < 1 << 63):
        raise ValueError(f"{text!r} is not a position: expected {EXPECTED}")
    kind = {"+": PositionKind.AFTER_START, "-": PositionKind.BEFORE_END}.get(text[:1], PositionKind.OFFSET)
    return Position(kind, int(digits))


class Lookup(NamedTuple):
    """The offsets of partitions, and the errors of partitions whose leader didn't return an offset."""

    offsets: Offsets
    errors: Errors


class Bounds(NamedTuple):
    """The start and end offsets of partitions; the end is the next offset after the last record. `errors` has the
    partitions that lack a start or an end."""

    starts: Offsets
    ends: Offsets
    errors: Errors


async def bounds(
    cluster: ClusterClient, partitions: Iterable[TopicPartition], isolation: int = READ_UNCOMMITTED
) -> Bounds:
    """Returns the start and end offsets of partitions; with READ_COMMITTED the end is the last stable offset."""
    partitions = list(partitions)
    starts, ends = await cluster.together(
        (
            list_offsets(cluster, dict.fromkeys(partitions, EARLIEST), isolation),
            list_offsets(cluster, dict.fromkeys(partitions, LATEST), isolation),
        )
    )
    return Bounds(starts.offsets, ends.offsets, starts.errors | ends.errors)


async def resolve(
    cluster: ClusterClient, positions: Mapping[TopicPartition, Position], isolation: int = READ_UNCOMMITTED
) -> Lookup:
    """Returns the offset of each position, at least the start and at most the end of its partition. A time after the
    last record is the end."""
    limits = await bounds(cluster, positions, isolation)
    readable = {place: position for place, position in positions.items() if place not in limits.errors}
    times = {place: position.number for place, position in readable.items() if position.kind is PositionKind.TIME}
    by_time = await list_offsets(cluster, times, isolation)
    return Lookup(
        {
            place: offset_of(position, limits.starts[place], limits.ends[place], by_time.offsets.get(place, -1))
            for place, position in readable.items()
            if place not in by_time.errors
        },
        limits.errors | by_time.errors,
    )


def offset_of(position: Position, start: int, end: int, by_time: int = -1) -> int:
    """Returns a position's offset in a partition. `by_time` is the offset that ListOffsets returned for a time, -1 if
    no record is so late."""
    number = position.number
    at = {
        PositionKind.START: start,
        PositionKind.END: end,
        PositionKind.OFFSET: number,
        PositionKind.AFTER_START: start + number,
        PositionKind.BEFORE_END: end - number,
        PositionKind.TIME: by_time if by_time >= 0 else end,
    }[position.kind]
    return max(start, min(at, end))


async def list_offsets(
    cluster: ClusterClient, timestamps: Mapping[TopicPartition, int], isolation: int = READ_UNCOMMITTED
) -> Lookup:
    """Returns the offsets of the first records at or after the timestamps, -1 if a partition has none. Asks only the
    leaders of these partitions; a leader that can't be asked is the error of its partitions."""
    found = Lookup({}, {})
    waiting, last = dict(timestamps), dict[TopicPartition, int]()

    async def ask() -> tuple[int, None]:
        requests = await _by_leader(cluster, waiting, found.errors)
        answers = await cluster.together(
            outcome(cluster.node(leader, _request(cluster, asked, isolation), ListOffsetsResponse))
            for leader, asked in requests.items()
        )
        last.clear()
        for asked, answer in zip(requests.values(), answers, strict=True):
            last.update(_read(asked, answer, found))
        for place in (*found.offsets, *found.errors):
            waiting.pop(place, None)
        return next(iter(last.values()), 0), None

    if waiting:
        await cluster.until_settled(ask)
    found.errors.update({place: explain(code) for place, code in last.items()})
    return found


async def _by_leader(
    cluster: ClusterClient, timestamps: Mapping[TopicPartition, int], errors: Errors
) -> dict[int, dict[TopicPartition, int]]:
    """Returns the timestamps by the partitions' leaders. Adds the errors of partitions without a leader."""
    leaders: dict[TopicPartition, int] = {}
    missing: dict[str, int] = {}
    for topic in (await cluster.metadata(sorted({place.topic for place in timestamps}))).topics:
        missing[topic.name or ""] = topic.error_code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for partition in topic.partitions:
            leaders[TopicPartition(topic.name or "", partition.partition_index)] = partition.leader_id
    requests: dict[int, dict[TopicPartition, int]] = {}
    for place, timestamp in timestamps.items():
        leader = leaders.get(place)
        if leader is None:
            errors[place] = explain(missing.get(place.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif leader < 0:
            errors[place] = explain(ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            requests.setdefault(leader, {})[place] = timestamp
    return requests


def _request(cluster: ClusterClient, timestamps: Mapping[TopicPartition, int], isolation: int) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for (name, index), timestamp in sorted(timestamps.items()):
        entry = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        topics.setdefault(name, []).append(entry)
    entries = [ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=entries, timeout_ms=cluster.timeout_ms)


def _read(
    asked: Iterable[TopicPartition], answer: ListOffsetsResponse | CommandError, found: Lookup
) -> dict[TopicPartition, int]:
    """Adds the offsets and errors of a leader's answer. Returns the retriable errors of partitions to ask for again."""
    if isinstance(answer, CommandError):
        found.errors.update(dict.fromkeys(asked, answer.message))
        return {}
    retriable: dict[TopicPartition, int] = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            place = TopicPartition(topic.name, partition.partition_index)
            if not partition.error_code:
                found.offsets[place] = partition.offset
            elif error_code(partition.error_code) in RETRIABLE:
                retriable[place] = partition.error_code
            else:
                found.errors[place] = explain(partition.error_code)
    return retriable
