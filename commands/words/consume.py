"""`odradek consume`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from cli.actions import Actions
from cli.flags import COUNT, FROM, GROUP, PARTITION, UNTIL
from commands.errors import misuse
from commands.records.fetching import FetchedRecords, PartitionReader
from commands.records.layout import add_record_layout, record_writer
from commands.records.output import FORMAT_HELP, PrintedRecord
from commands.records.positions import (
    EXPECTED,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    START,
    Lookup,
    Position,
    PositionKind,
    bounds,
    resolve,
)
from commands.session import Session, add_topics, chosen_topics
from protocol.lazy import lazy
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from commands.groups import consumer
else:  # for members of groups
    consumer = lazy("commands.groups.consumer")

ISOLATION: Final = {"read_committed": READ_COMMITTED, "read_uncommitted": READ_UNCOMMITTED}


def declare(actions: Actions) -> None:
    actions.only(
        consume,
        concurrent=True,
        options=_options,
        examples=(
            "odradek consume orders --exit-at-end",
            "odradek consume orders payments -n 10 -f '%t/%p@%o %D %k{hex} = %v\\n'",
            "odradek consume orders --from -2 --exit-at-end -o json",
            "odradek consume orders --from @-1h --until end -p 0 -p 1",
            "odradek consume orders --isolation read_committed --exit-at-end | head -1",
            "odradek consume orders -g billing --exit-at-end",
        ),
        more=f"A position is {EXPECTED}.\n\n{FORMAT_HELP}\n\nOn a terminal it prints values, elsewhere lines of JSON.",
    )


def _options(parser: argparse.ArgumentParser) -> None:
    add_topics(parser)
    GROUP.add(parser, help="read as a member of this group, which shares partitions and commits offsets")
    PARTITION.add(parser, repeatable=True)
    FROM.add(parser, help="first position to read; default: start, or the committed offsets of a group")
    UNTIL.add(parser, help="stop before this position; waits if it is after the end")
    COUNT.add(parser, help="stop after N records")
    parser.add_argument("-e", "--exit-at-end", action="store_true", help="stop at the current end of the partitions")
    parser.add_argument(
        "--isolation", choices=ISOLATION, default="read_committed", help="default: only committed records"
    )
    add_record_layout(parser)


class ReadLimits(NamedTuple):
    """The limits of reading: end offsets of some partitions, and a number of records."""

    ends: dict[TopicPartition, int]
    limit: int | None


async def consume(session: Session) -> None:
    options = session.options
    start = session.position("--from", options.start) if options.start else None
    until = session.position("--until", options.until) if options.until else None
    if until is not None and options.exit_at_end:
        raise misuse("--until and --exit-at-end exclude each other")
    write = record_writer(session)
    options.topics = await chosen_topics(session)
    if options.group is not None:
        if options.partition or start is not None or until is not None:
            raise misuse("--group has its own offsets and partitions: leave out -p, --from and --until")
        await consumer.consume_as_member(session, write)
        return
    places = await _places(session)
    isolation = ISOLATION[options.isolation]
    reader = PartitionReader(session.cluster, isolation=isolation)
    ends, unbounded = await _ends(session, places, until, isolation)
    starts, unknown = await _starts(session, [place for place in places if place not in unbounded], start or START)
    reader.positions |= starts
    for place, error in sorted((unbounded | unknown).items()):
        session.output.failed(f"{place}: {error}")
    limits = ReadLimits(ends, options.count)
    try:
        await _read(session, reader, limits, write)
    finally:
        await reader.close()


async def _places(session: Session) -> list[TopicPartition]:
    places: list[TopicPartition] = []
    chosen = set(session.options.partition or ())
    for topic in await session.cluster.topics(session.options.topics):
        indexes = {partition.partition_index for partition in topic.partitions}
        if missing := sorted(chosen - indexes):
            raise misuse(f"--partition {missing[0]}: {topic.name} has partitions 0 to {len(indexes) - 1}")
        places += [TopicPartition(topic.name or "", index) for index in sorted(chosen or indexes)]
    return places


async def _starts(session: Session, places: list[TopicPartition], start: Position) -> Lookup:
    """Returns the offset at which to start, by partition. If a partition's leader can't be asked, a start that needs no
    look-up is used: the reader waits for a leader, and continues at the log's start if the offset isn't in the log."""
    found = await resolve(session.cluster, dict.fromkeys(places, start))
    if start.kind not in (PositionKind.START, PositionKind.OFFSET) or session.options.exit_at_end:
        return found
    for place, error in found.errors.items():
        session.output.note(f"odradek: {place}: {error}; waiting for it")
    return Lookup({**dict.fromkeys(found.errors, start.number), **found.offsets}, {})


async def _ends(session: Session, places: list[TopicPartition], until: Position | None, isolation: int) -> Lookup:
    """Returns the offset at which to stop, by partition."""
    if session.options.exit_at_end:
        limits = await bounds(session.cluster, places, isolation)
        return Lookup(limits.ends, limits.errors)
    if until is None:
        return Lookup({}, {})
    if until.kind is PositionKind.OFFSET:
        return Lookup(dict.fromkeys(places, until.number), {})  # also an offset that is not written yet
    return await resolve(session.cluster, dict.fromkeys(places, until), isolation)


async def _read(
    session: Session, reader: PartitionReader, limits: ReadLimits, write: Callable[[PrintedRecord], None]
) -> None:
    left = limits.limit
    _drop_finished(reader, limits)
    while reader.positions and left != 0:
        async for printed in printed_records(session, reader, reader.poll(), limits):
            write(printed)
            left = None if left is None else left - 1
            if left == 0:
                break
        sys.stdout.flush()
        _drop_finished(reader, limits)


async def printed_records(
    session: Session, reader: PartitionReader, answers: AsyncIterator[FetchedRecords], limits: ReadLimits
) -> AsyncIterator[PrintedRecord]:
    """Yields the records of answers that are before the end offset of their partition."""
    async for place, records, _ in answers:
        end = limits.ends.get(place)
        for record, kind in records:
            if end is None or record.offset < end:
                yield PrintedRecord(place, record, kind)
    while reader.resets:
        place = reader.resets.pop()
        session.output.note(f"odradek: {place}: the records at its offset are gone; continuing at its start")


def _drop_finished(reader: PartitionReader, limits: ReadLimits) -> None:
    """Stops reading partitions that have reached their end offset."""
    for place, end in limits.ends.items():
        if reader.positions.get(place, -1) >= end:
            del reader.positions[place]
