"""One segment, verified: its batches, and its indexes against them."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

from broker.inspection.files import batches
from protocol.errors import KafkaError
from protocol.records.batch import MAGIC_V2, BatchHeader
from protocol.records.record import read_records
from storage.batches import check
from storage.disk import Disk
from storage.index import CorruptIndex, OffsetIndex
from storage.names import INDEX, LOG, TIME_INDEX, TXN_INDEX, segment_file
from storage.time_index import NO_TIMESTAMP, TimeIndex
from storage.txn_index import TransactionIndex

ANY_SIZE = 1 << 40


class Segment(NamedTuple):
    """Which one, and what is known of it beforehand."""

    folder: str
    base_offset: int
    end_offset: int | None
    """Where the next one begins."""
    is_recovered: bool
    """Whether the next start will scan it and make its indexes anew."""
    names: frozenset[str]
    """The files in its folder."""

    def path(self, extension: str) -> str:
        return os.path.join(self.folder, segment_file(self.base_offset, extension))

    def has(self, extension: str) -> bool:
        return segment_file(self.base_offset, extension) in self.names


class Found(NamedTuple):
    """Something about one of its files; recoverable if the next start puts it right."""

    path: str
    text: str
    recoverable: bool = False


class Checked(NamedTuple):
    """What is in a segment."""

    batches: int
    bytes: int
    findings: list[Found]


class Places:
    """Where the batches are, and how far timestamps had come there."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.last_offsets: list[int] = []
        self.latest: list[int] = []
        """The largest timestamp up to and with each batch."""
        self.end = 0

    def add(self, position: int, header: BatchHeader) -> None:
        self.positions.append(position)
        self.last_offsets.append(header.last_offset)
        self.latest.append(max(header.max_timestamp, self.latest[-1] if self.latest else NO_TIMESTAMP))
        self.end = position + header.size_bytes


def check_segment(disk: Disk, segment: Segment, watch: Callable[[int], None], *, deep: bool) -> Checked:
    """Raises OSError."""
    places, findings = Places(), list[Found]()
    path = segment.path(LOG)
    size = 0 if (info := disk.stat(path)) is None else info.size_bytes
    next_offset = segment.base_offset
    try:
        for position, header, view in batches(disk, path):
            check(view, 0, header)
            if header.magic >= MAGIC_V2 and header.base_offset < next_offset:
                findings.append(Found(path, f"offset {header.base_offset} at byte {position}: {next_offset} is next"))
            if deep and header.magic >= MAGIC_V2:
                for _ in read_records(view, 0, header):
                    pass
            next_offset = header.next_offset
            places.add(position, header)
            watch(header.size_bytes)
    except KafkaError as error:
        findings.append(Found(path, f"byte {places.end}: {error.message}", segment.is_recovered))
    else:
        if places.end != size:
            text = f"{size - places.end} bytes from {places.end} on are no whole batch"
            findings.append(Found(path, text, segment.is_recovered))
    watch(size - places.end)
    if segment.end_offset is not None and next_offset > segment.end_offset:
        text = f"reaches to offset {next_offset - 1}, but the next one begins at {segment.end_offset}"
        findings.append(Found(path, text))
    for check_index in (_offset_index, _time_index, _transaction_index):
        findings += check_index(disk, segment, places)
    return Checked(len(places.positions), places.end, findings)


def _offset_index(disk: Disk, segment: Segment, places: Places) -> Iterator[Found]:
    path = segment.path(INDEX)
    if not segment.has(INDEX):
        yield Found(path, "is missing: the next start makes it anew", recoverable=True)
        return
    index = OffsetIndex(path, segment.base_offset, disk=disk, max_size_bytes=ANY_SIZE)
    try:
        index.verify()
    except CorruptIndex as error:
        yield Found(path, _without(path, error), segment.is_recovered)
        return
    for offset, position in index:
        at = bisect_left(places.positions, position)
        if at == len(places.positions) or places.positions[at] != position or places.last_offsets[at] < offset:
            text = f"offset {offset} at byte {position}: no batch that has it begins there"
            yield Found(path, text, segment.is_recovered)
            return


def _time_index(disk: Disk, segment: Segment, places: Places) -> Iterator[Found]:
    path = segment.path(TIME_INDEX)
    if not segment.has(TIME_INDEX):
        yield Found(path, "is missing: the next start makes it anew", recoverable=True)
        return
    index = TimeIndex(path, segment.base_offset, disk=disk, max_size_bytes=ANY_SIZE)
    try:
        index.verify()
    except CorruptIndex as error:
        yield Found(path, _without(path, error), segment.is_recovered)
        return
    for timestamp, offset in index:
        at = bisect_left(places.last_offsets, offset + 1) - 1  # the last batch that ends at the offset or before
        if at >= 0 and places.latest[at] > timestamp:
            text = f"says {timestamp} up to offset {offset}, where {places.latest[at]} is the largest"
            yield Found(path, text, segment.is_recovered)
            return
    if segment.end_offset is not None and places.latest and index.last_entry.timestamp < places.latest[-1]:
        text = f"ends at {index.last_entry.timestamp}, where {places.latest[-1]} is the segment's largest"
        yield Found(path, text, segment.is_recovered)


def _transaction_index(disk: Disk, segment: Segment, places: Places) -> Iterator[Found]:
    path = segment.path(TXN_INDEX)
    if not segment.has(TXN_INDEX):
        return
    index = TransactionIndex(path, segment.base_offset, disk=disk)
    try:
        index.sanity_check()
    except CorruptIndex as error:
        yield Found(path, _without(path, error), segment.is_recovered)
        return
    last = places.last_offsets[-1] if places.last_offsets else -1
    for aborted in index:
        if aborted.last_offset > last:
            yield Found(path, f"{aborted} ended after the segment did, at {last}", segment.is_recovered)


def _without(path: str, error: Exception) -> str:
    return str(error).removeprefix(f"{path}: ")
