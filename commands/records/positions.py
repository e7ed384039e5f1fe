"""Positions in partitions: parses them and finds their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from cli.times import parse_time
from commands.client.cluster_client import ClusterClient, leaders
from commands.errors import raise_if
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


class Bounds(NamedTuple):
    """The start and end offsets of partitions; the end is the next offset after the last record."""

    starts: Offsets
    ends: Offsets


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
    return Bounds(starts, ends)


async def resolve(
    cluster: ClusterClient, positions: Mapping[TopicPartition, Position], isolation: int = READ_UNCOMMITTED
) -> Offsets:
    """Returns the offset of each position, at least the start and at most the end of its partition. A time after the
    last record is the end."""
    limits = await bounds(cluster, positions, isolation)
    times = {place: position.number for place, position in positions.items() if position.kind is PositionKind.TIME}
    by_time = await list_offsets(cluster, times, isolation)
    return {
        place: offset_of(position, limits.starts[place], limits.ends[place], by_time.get(place, -1))
        for place, position in positions.items()
    }


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
) -> Offsets:
    """Returns the offsets of the first records at or after the timestamps, -1 if a partition has none."""
    names = sorted({place.topic for place in timestamps})
    topics = {topic.name: topic for topic in await cluster.topics(names)} if names else {}
    requests: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
    for name in names:
        for leader, partitions in leaders(topics[name]).items():
            for index in (partition.partition_index for partition in partitions):
                timestamp = timestamps.get(TopicPartition(name, index))
                if timestamp is not None:
                    entry = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                    requests.setdefault(leader, {}).setdefault(name, []).append(entry)
    offsets: Offsets = {}
    for answer in await cluster.together(_ask(cluster, leader, isolation, of) for leader, of in requests.items()):
        offsets |= answer
    for place in timestamps:
        raise_if(str(place), 0 if place in offsets else 3)
    return offsets


async def _ask(
    cluster: ClusterClient, leader: int, isolation: int, topics: Mapping[str, list[ListOffsetsPartition]]
) -> Offsets:
    entries = [ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=entries, timeout_ms=cluster.timeout_ms
    )

    async def ask() -> tuple[int, ListOffsetsResponse]:
        answer = await cluster.node(leader, request, ListOffsetsResponse)
        codes = (partition.error_code for topic in answer.topics for partition in topic.partitions)
        return next((code for code in codes if code), 0), answer

    offsets: Offsets = {}
    for topic in (await cluster.until_settled(ask)).topics:
        for partition in topic.partitions:
            place = TopicPartition(topic.name, partition.partition_index)
            raise_if(str(place), partition.error_code)
            offsets[place] = partition.offset
    return offsets
