"""Verifies a segment: its batches, and its indexes against the batches."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from programs.log.files import window
from protocol.errors import KafkaError
from protocol.records.batch import MAGIC_V2, BatchHeader
from protocol.records.record import read_records
from storage.disk import Disk
from storage.names import INDEX, LOG, TIME_INDEX, TXN_INDEX, segment_file
from storage.recovering.scan import OffsetBounds, following_offset, order_fault
from storage.segment.batches import check, walk
from storage.segment.index import CorruptIndex, OffsetIndex
from storage.segment.time_index import NO_TIMESTAMP, TimeIndex
from storage.segment.txn_index import TransactionIndex

ANY_SIZE = 1 << 40


class SegmentToVerify(NamedTuple):
    """A segment to verify."""

    folder: str
    base_offset: int
    end_offset: int | None
    """The base offset of the next segment."""
    limit: int
    """The end of its possible offsets: the base offset of the next segment, or the log's end when it was closed."""
    is_recovered: bool
    """True if the next start will scan it and rebuild its indexes."""
    names: frozenset[str]
    """The files in its folder."""

    def path(self, extension: str) -> str:
        return os.path.join(self.folder, segment_file(self.base_offset, extension))

    def has(self, extension: str) -> bool:
        return segment_file(self.base_offset, extension) in self.names


class SegmentFault(NamedTuple):
    """A fault of one of its files; recoverable if the next start repairs it."""

    path: str
    text: str
    recoverable: bool = False


class SegmentReport(NamedTuple):
    """The result of verifying a segment."""

    batches: int
    bytes: int
    findings: list[SegmentFault]


class Places:
    """The positions of the batches, with the last offset and the latest timestamp at each."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.last_offsets: list[int] = []
        self.latest: list[int] = []
        """The largest timestamp up to and with each batch."""
        self.damaged: set[int] = set()
        """Positions of damaged batches, of which only the length is reliable."""
        self.end = 0
        self.is_whole = False
        """True if the batches reach the end of the file."""

    def add(self, position: int, header: BatchHeader, *, damaged: bool) -> None:
        last_offset = self.last_offsets[-1] if self.last_offsets else -1
        latest = self.latest[-1] if self.latest else NO_TIMESTAMP
        self.positions.append(position)
        self.last_offsets.append(last_offset if damaged else header.last_offset)
        self.latest.append(latest if damaged else max(header.max_timestamp, latest))
        if damaged:
            self.damaged.add(position)
        self.end = position + header.size_bytes

    def has_batch(self, position: int, offset: int) -> bool:
        """True if a batch with the offset starts at the position, or if damage makes that possible."""
        if position in self.damaged or (position >= self.end and not self.is_whole):
            return True
        at = bisect_left(self.positions, position)
        return at < len(self.positions) and self.positions[at] == position and self.last_offsets[at] >= offset


def check_segment(disk: Disk, segment: SegmentToVerify, watch: Callable[[int], None], *, deep: bool) -> SegmentReport:
    """Verifies a segment. Raises OSError."""
    places = Places()
    findings = list(_batches(disk, segment, places, watch, deep))
    for check_index in (_offset_index, _time_index, _transaction_index):
        findings += check_index(disk, segment, places)
    return SegmentReport(len(places.positions), places.end, findings)


def _batches(
    disk: Disk, segment: SegmentToVerify, places: Places, watch: Callable[[int], None], deep: bool
) -> Iterator[SegmentFault]:
    """Yields each damaged batch, and the position after which no batch can be read."""
    path = segment.path(LOG)
    size, next_offset = 0, segment.base_offset
    bounds = OffsetBounds(segment.limit, gaps=True)
    try:
        with window(disk, path) as (view_of, size):
            for position, header in walk(view_of, 0, size):
                end = position + header.size_bytes
                problem = _problem(view_of(position, end), header, deep)
                if problem is None and header.magic >= MAGIC_V2:
                    problem = order_fault(header, next_offset, following_offset(view_of, end, size), bounds)
                if problem is None:
                    next_offset = header.next_offset
                else:
                    yield SegmentFault(path, f"byte {position}: {problem}", segment.is_recovered)
                places.add(position, header, damaged=problem is not None)
                watch(header.size_bytes)
    except KafkaError as error:
        yield SegmentFault(path, f"byte {places.end}: {error.message}", segment.is_recovered)
    else:
        places.is_whole = places.end == size
        if not places.is_whole:
            text = f"{size - places.end} bytes from {places.end} on are not a whole batch"
            yield SegmentFault(path, text, segment.is_recovered)
    watch(size - places.end)
    if segment.end_offset is not None and next_offset > segment.end_offset:
        text = f"reaches to offset {next_offset - 1}, but the next segment starts at {segment.end_offset}"
        yield SegmentFault(path, text)
    elif segment.end_offset is not None and next_offset < segment.end_offset and not places.damaged:
        text = f"ends at offset {next_offset}, and the next segment starts at {segment.end_offset}: is it compacted?"
        yield SegmentFault(path, text, recoverable=True)


def _problem(view: memoryview, header: BatchHeader, deep: bool) -> str | None:
    """Returns the fault of a batch; None if it is sound."""
    try:
        check(view, 0, header)
        if deep and header.magic >= MAGIC_V2:
            for _ in read_records(view, 0, header):
                pass
    except KafkaError as error:
        return error.message
    return None


def _sound(
    segment: SegmentToVerify, index: OffsetIndex | TimeIndex, extension: str
) -> Generator[SegmentFault, None, bool]:
    """Yields a fault if an index is missing or inconsistent; returns whether its entries can be checked. The indexes of
    the last segment are written when it is closed, so they may be missing."""
    if not segment.has(extension):
        if segment.end_offset is not None or not segment.is_recovered:
            yield SegmentFault(index.path, "is missing: the next start rebuilds it", recoverable=True)
        return False
    try:
        index.verify()
    except CorruptIndex as error:
        yield SegmentFault(index.path, _without(index.path, error), segment.is_recovered)
        return False
    return True


def _offset_index(disk: Disk, segment: SegmentToVerify, places: Places) -> Iterator[SegmentFault]:
    path = segment.path(INDEX)
    index = OffsetIndex(path, segment.base_offset, disk=disk, max_size_bytes=ANY_SIZE)
    if not (yield from _sound(segment, index, INDEX)):
        return
    for offset, position in index:
        if not places.has_batch(position, offset):
            text = f"offset {offset} at byte {position}: no batch with it starts there"
            yield SegmentFault(path, text, segment.is_recovered)
            return


def _time_index(disk: Disk, segment: SegmentToVerify, places: Places) -> Iterator[SegmentFault]:
    path = segment.path(TIME_INDEX)
    index = TimeIndex(path, segment.base_offset, disk=disk, max_size_bytes=ANY_SIZE)
    if not (yield from _sound(segment, index, TIME_INDEX)):
        return
    for timestamp, offset in index:
        at = bisect_left(places.last_offsets, offset + 1) - 1  # the last batch that ends at the offset or before
        if at >= 0 and places.latest[at] > timestamp:
            text = f"has {timestamp} up to offset {offset}, but the largest timestamp is {places.latest[at]}"
            yield SegmentFault(path, text, segment.is_recovered)
            return
    if segment.end_offset is not None and places.latest and index.last_entry.timestamp < places.latest[-1]:
        text = f"ends at {index.last_entry.timestamp}, but the segment's largest timestamp is {places.latest[-1]}"
        yield SegmentFault(path, text, segment.is_recovered)


def _transaction_index(disk: Disk, segment: SegmentToVerify, places: Places) -> Iterator[SegmentFault]:
    path = segment.path(TXN_INDEX)
    if not segment.has(TXN_INDEX):
        return
    index = TransactionIndex(path, segment.base_offset, disk=disk)
    try:
        index.sanity_check()
    except CorruptIndex as error:
        yield SegmentFault(path, _without(path, error), segment.is_recovered)
        return
    last = places.last_offsets[-1] if places.last_offsets else -1
    for aborted in index:
        if aborted.last_offset > last:
            yield SegmentFault(path, f"{aborted} ended after the segment did, at {last}", segment.is_recovered)


def _without(path: str, error: Exception) -> str:
    return str(error).removeprefix(f"{path}: ")
