"""Reads records of a topic for a page: forward from a position, or backward from the end in growing windows. It has the
records of a few answers in memory, however many there are."""

from __future__ import annotations

import heapq
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from client.clock import next_turn
from commands.client.cluster_client import ClusterClient
from commands.errors import CommandError
from commands.records.fetching import PartitionReader
from commands.records.positions import END, READ_UNCOMMITTED, START, Position, PositionKind, bounds, resolve
from console.filters import RecordFilter
from console.reading import RecordOpener
from console.records import AUTO, ShownRecord, beginning
from protocol.records.batch import TimestampType
from protocol.records.record import Record
from protocol.types import TopicPartition

ANSWER_BYTES: Final = 256 * 1024
"""Bytes of one answer of a broker, which may be many more once they are decompressed. A larger batch comes alone."""

WINDOW: Final = 2000
MAX_WINDOW: Final = 50_000
"""Offsets of a partition that are read at once when reading backward with a filter. The window doubles until the
maximum."""

MAX_OFFSET: Final = (1 << 63) - 1

TURN: Final = 200
"""Records after which other pages get their turn."""

KEPT_BYTES: Final = 16 * 1024
"""Bytes of a key or value that a list keeps; the page of a record has all of it."""

IDLE_MS: Final = 300
"""Pause after a fetch that has brought the reading no further."""


class RecordQuery(NamedTuple):
    """The records that a page asks for."""

    places: Sequence[TopicPartition]
    isolation: int
    start: Position | None
    """The position to start from; None starts at the start, or at the end if the newest come first."""
    is_newest_first: bool
    limit: int
    filter: RecordFilter
    decode: str = AUTO
    """The format in which values are shown and filtered."""
    is_stream: bool = False
    """True if records are needed whole and in any order, as for a download."""


class ScanProgress(NamedTuple):
    """The matches since the last progress, and how far the reading has come."""

    records: Sequence[ShownRecord]
    read: int
    """Offsets that were read so far."""
    total: int
    """Offsets to read at most."""
    matches: int
    is_done: bool
    errors: Sequence[str] = ()


Ranges = dict[TopicPartition, tuple[int, int]]
"""First offset, and the offset after the last one, by partition."""


class RecordScan:
    """Reads the records that a question asks for."""

    def __init__(self, cluster: ClusterClient, question: RecordQuery, opener: RecordOpener) -> None:
        self._cluster = cluster
        self._question = question
        self._opener = opener
        self.at: dict[TopicPartition, int] = {}
        self._matches = 0
        self._read = 0

    async def run(self) -> AsyncGenerator[ScanProgress, None]:
        """Yields progress until all records are read, or the limit of matches is reached."""
        question = self._question
        ranges, errors = await self._ranges()
        total = sum(high - low for low, high in ranges.values())
        if question.is_newest_first:
            rounds = self._backward(ranges)
        else:
            rounds = self.window(ranges) if question.filter or question.is_stream else self._oldest(ranges)
        async with aclosing(rounds):
            async for records in rounds:
                kept = records[: question.limit - self._matches]
                self._matches += len(kept)
                is_full = self._matches >= question.limit
                yield ScanProgress(kept, self._read, total, self._matches, is_full, errors)
                if is_full:
                    return
        yield ScanProgress((), self._read, total, self._matches, True, errors)

    async def _ranges(self) -> tuple[Ranges, list[str]]:
        """Returns the offsets to read, and the errors of partitions that can't be read."""
        question, default = self._question, END if self._question.is_newest_first else START
        limits = await bounds(self._cluster, question.places, question.isolation)
        wanted = {place: question.start or default for place in question.places if place not in limits.errors}
        at, errors = await resolve(self._cluster, wanted, question.isolation)
        if question.is_newest_first:
            ranges = {place: (limits.starts[place], offset) for place, offset in at.items()}
        else:
            ranges = {place: (offset, limits.ends[place]) for place, offset in at.items()}
        return ranges, [f"{place}: {error}" for place, error in (limits.errors | errors).items()]

    async def _oldest(self, ranges: Ranges) -> AsyncGenerator[Sequence[ShownRecord], None]:
        """Yields the oldest records of all partitions together."""
        limit, oldest = self._question.limit, list[ShownRecord]()
        while ranges and len(oldest) < limit:  # again if compaction has left gaps
            firsts = {place: (low, min(high, low + limit)) for place, (low, high) in ranges.items()}
            async with aclosing(self.window(firsts)) as answers:
                async for records in answers:
                    oldest = heapq.nsmallest(limit, (*oldest, *records), self.age)
            ranges = {place: (firsts[place][1], high) for place, (_, high) in ranges.items() if high > firsts[place][1]}
        yield oldest

    async def _backward(self, ranges: Ranges) -> AsyncGenerator[Sequence[ShownRecord], None]:
        """Yields the matches of each window, the newest first."""
        question = self._question
        window = WINDOW if question.filter else question.limit
        left = {place: (low, high) for place, (low, high) in ranges.items() if high > low}
        while left:
            part = {place: (max(low, high - window), high) for place, (low, high) in left.items()}
            newest: list[ShownRecord] = []
            async with aclosing(self.window(part)) as answers:
                async for records in answers:
                    newest = heapq.nlargest(question.limit, (*newest, *records), self.age)
                    yield ()  # only progress
            yield newest
            left = {place: (low, part[place][0]) for place, (low, _) in left.items() if part[place][0] > low}
            window = min(window * 2, MAX_WINDOW)

    async def window(self, ranges: Ranges) -> AsyncGenerator[Sequence[ShownRecord], None]:
        """Yields the matches of each answer within ranges of offsets; `at` has the next offset of each partition."""
        reader = self._reader(ranges)
        at = self.at = {place: low for place, (low, _) in ranges.items()}
        try:
            while reader.positions:
                before = dict(at)
                async for place, records, next_offset in reader.poll():
                    high = ranges[place][1]
                    self._read += max(min(next_offset, high) - at[place], 0)
                    at[place] = next_offset
                    yield await self.matching(place, [item for item in records if item[0].offset < high])
                for place in [place for place, offset in reader.positions.items() if offset >= ranges[place][1]]:
                    del reader.positions[place]
                if at == before:
                    yield ()  # only progress
                    await self._cluster.pause(IDLE_MS)
        finally:
            await reader.close()

    def _reader(self, ranges: Ranges) -> PartitionReader:
        reader = new_reader(self._cluster, self._question.isolation)
        reader.positions |= {place: low for place, (low, high) in ranges.items() if high > low}
        return reader

    async def matching(
        self, place: TopicPartition, records: Sequence[tuple[Record, TimestampType]]
    ) -> list[ShownRecord]:
        """Returns the records that pass the filter."""
        question, opener, matches = self._question, self._opener, list[ShownRecord]()
        await opener.prepare(record for record, _ in records)
        for count, (record, kind) in enumerate(records, 1):
            masked = opener.masks.record(record)
            key = opener.open(place.topic, "key", record.key, AUTO)
            value = opener.open(place.topic, "value", record.value, question.decode)
            if question.filter.passes(masked, key.data, value.data):
                sizes = [-1 if data is None else len(data) for data in (record.key, record.value)]
                match = ShownRecord(place, masked, kind, key, value, *sizes)
                matches.append(match if question.is_stream else beginning(match, KEPT_BYTES))
            if count % TURN == 0:
                await next_turn()
        return matches

    def age(self, record: ShownRecord) -> tuple[int, ...]:
        """Returns the key that sorts records: their offset in one partition, else their time."""
        if len(self._question.places) == 1:
            return (record.record.offset,)
        return (record.record.timestamp, record.place.partition, record.record.offset)


def new_reader(cluster: ClusterClient, isolation: int) -> PartitionReader:
    """Returns a reader with small answers. Its fetches don't wait for records, because a broker answers the requests of
    a connection one after the other."""
    return PartitionReader(cluster, isolation=isolation, max_bytes=ANSWER_BYTES, max_wait_ms=0)


async def one_record(
    cluster: ClusterClient, place: TopicPartition, offset: int, opener: RecordOpener, name: str = AUTO
) -> ShownRecord | None:
    """Returns the record at an offset, whole; None if there is none. Raises CommandError."""
    limits = await bounds(cluster, [place])
    if place in limits.errors:
        raise CommandError(f"{place}: {limits.errors[place]}")
    if not limits.starts[place] <= offset < limits.ends[place]:
        return None
    question = RecordQuery(
        [place], READ_UNCOMMITTED, Position(PositionKind.OFFSET, offset), False, 1, RecordFilter(), name, True
    )
    async with aclosing(RecordScan(cluster, question, opener).run()) as parts:
        async for part in parts:
            for record in part.records:
                return record if record.record.offset == offset else None
    return None
