"""A segment of a log: a file of batches from a base offset on, and its indexes.

Appends use pwritev without copying the batches; reads return views of a mapping. A mapped file is never cut: truncation
creates a new file (truncation.py), and views stay valid. Kafka classes LogSegment and FileRecords.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from protocol.errors import KafkaError
from protocol.records.batch import LOG_OVERHEAD, BatchHeader
from storage import names
from storage.config import LogConfig
from storage.disk import Buffer, Disk
from storage.failure import tell
from storage.segment.batches import READ_AHEAD_BYTES, BatchPlace, find_offset, leads_to_batch, until_damage, walk
from storage.segment.file import EMPTY, Mapping, OpenFile, SegmentFile
from storage.segment.index import OffsetIndex
from storage.segment.jitter import jitter_ms
from storage.segment.recent import RecentBatches
from storage.segment.time_index import NO_TIMESTAMP, TimeIndex, TimestampOffset
from storage.segment.txn_index import TransactionIndex

REMAP_BYTES: Final = 1 << 20
"""Bytes at the active segment's end that are read by pread: a new mapping at every read would cost more than a copy."""

UNKNOWN: Final = -2
"""A timestamp that has not been read yet (-1 means no timestamp)."""


class Segment:
    """A range of the log, from `base_offset` up to the next segment's. Files are opened at their first use.

    `size_bytes` is the number of written bytes; `sealed` is True after the last append. Methods raise OSError.
    """

    __slots__ = (
        "_disk", "_indexed_at", "_loaded", "_mapping", "_max_index_bytes", "_max_timestamp",
        "_max_timestamp_offset", "_open_file", "_recent", "base_offset", "created_ms", "directory", "index",
        "index_full", "index_interval_bytes", "indexes_unsynced", "known_first_timestamp", "roll_jitter_ms", "sealed",
        "size_bytes", "suffix", "time_index", "txn_index",
    )  # fmt: skip

    def __init__(
        self,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        disk: Disk,
        now_ms: int,
        size_bytes: int = 0,
        fresh: bool = False,
        sealed: bool = False,
        suffix: str = "",
    ) -> None:
        self._disk = disk
        self._loaded = disk.open_files.loaded
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.size_bytes = size_bytes
        self.sealed = sealed
        self.created_ms = now_ms
        self.known_first_timestamp = UNKNOWN
        """The first timestamp if it is in memory, otherwise negative."""
        self.index_interval_bytes = config.index_interval_bytes
        self.roll_jitter_ms = jitter_ms(directory, base_offset, config)
        self.index_full = False
        self.indexes_unsynced = False
        self._max_index_bytes = config.segment_index_bytes
        self._make_indexes(fresh=fresh)
        self.txn_index = TransactionIndex(self.path_of(names.TXN_INDEX), base_offset, disk=disk)
        self._open_file = OpenFile()
        self._mapping: Mapping | None = None
        self._max_timestamp = NO_TIMESTAMP if fresh else UNKNOWN
        self._max_timestamp_offset = base_offset
        self._indexed_at = size_bytes
        self._recent = RecentBatches()

    @classmethod
    def create(
        cls, directory: str, base_offset: int, config: LogConfig, *, disk: Disk, now_ms: int, suffix: str = ""
    ) -> Segment:
        """Creates an empty segment, and replaces leftover files of the same name."""
        segment = cls(directory, base_offset, config, disk=disk, now_ms=now_ms, fresh=True, suffix=suffix)
        disk.unlink(segment.path, missing_ok=True)
        disk.unlink(segment.path_of(names.TXN_INDEX), missing_ok=True)
        file = segment._open_file.open(disk, segment.path, create=True)
        if config.preallocate:
            file.cut(config.segment_bytes)
        return segment

    def _make_indexes(self, *, fresh: bool) -> None:
        size, offset, disk, path = self._max_index_bytes, self.base_offset, self._disk, self.path_of
        self.index = OffsetIndex(path(names.INDEX), offset, disk=disk, max_size_bytes=size, fresh=fresh)
        self.time_index = TimeIndex(path(names.TIME_INDEX), offset, disk=disk, max_size_bytes=size, fresh=fresh)

    def reset_indexes(self) -> None:
        """Removes all entries of all indexes, before they are rebuilt."""
        self._make_indexes(fresh=True)
        self.txn_index.reset()

    def __repr__(self) -> str:
        return f"Segment({self.path}, {self.size_bytes} bytes)"

    @property
    def path(self) -> str:
        """The path of the file of batches."""
        return self.path_of(names.LOG)

    def path_of(self, extension: str) -> str:
        """Returns the path of the segment's file with this extension."""
        return os.path.join(self.directory, names.segment_file(self.base_offset, extension) + self.suffix)

    # Appending

    def append(self, buffers: Sequence[Buffer], batches: Sequence[BatchHeader], size_bytes: int) -> None:
        """Writes batches at the end. The caller rolls first if needed, and calls `cut_back` after an OSError."""
        position = self.size_bytes
        file = self._open_file.file or self._open()
        file.write(buffers, position)
        self._note(batches, position)
        self.size_bytes += size_bytes

    def append_one(
        self, batch: memoryview, base_offset: int, last_offset: int, timestamp: int, size_bytes: int
    ) -> None:
        """Works like `append`, for a single batch."""
        position = self.size_bytes
        file = self._open_file.file or self._open()
        file.write((batch,), position)
        if self._max_timestamp == UNKNOWN:
            self._look_for_max_timestamp()
        if timestamp > self._max_timestamp:
            self._max_timestamp, self._max_timestamp_offset = timestamp, last_offset
        if position - self._indexed_at > self.index_interval_bytes:
            self._index(last_offset, position)
        self._recent.add(base_offset, position)
        self.size_bytes = position + size_bytes

    def adopt(self, batches: Sequence[BatchHeader], size_bytes: int) -> None:
        """Registers batches that the caller has written to the file, from its start on."""
        self._note(batches, 0)
        self.size_bytes = size_bytes

    def _note(self, batches: Sequence[BatchHeader], position: int) -> None:
        """Updates indexes, timestamps and recent batches with batches at this position."""
        if not position and batches:
            self.known_first_timestamp = batches[0].max_timestamp
        if self._max_timestamp == UNKNOWN:
            self._look_for_max_timestamp()
        for batch in batches:
            if batch.max_timestamp > self._max_timestamp:
                self._max_timestamp, self._max_timestamp_offset = batch.max_timestamp, batch.last_offset
            if position - self._indexed_at > self.index_interval_bytes:
                self._index(batch.last_offset, position)
            self._recent.add(batch.base_offset, position)
            position += batch.batch_length + LOG_OVERHEAD

    def _index(self, last_offset: int, position: int) -> None:
        if self.index_full:  # only within an append of several batches: the next append rolls
            return
        self.index.append(last_offset, position)
        self.time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
        self._indexed_at = position
        self.index_full = self.index.is_full or self.time_index.is_full

    def cut_back(self) -> None:
        """Cuts the file after `size_bytes`, where a failed write or the preallocation left bytes. No view contains
        them."""
        if self._open_file.was_opened:
            (self._open_file.file or SegmentFile(self._disk, self.path)).cut(self.size_bytes)

    def _open(self) -> SegmentFile:
        self.index_full = self.index.is_full or self.time_index.is_full
        return self._open_file.open(self._disk, self.path)

    @property
    def max_timestamp(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of its batch; (-1, base offset) without timestamps."""
        if self._max_timestamp == UNKNOWN:
            self._look_for_max_timestamp()
        return TimestampOffset(self._max_timestamp, self._max_timestamp_offset)

    @max_timestamp.setter
    def max_timestamp(self, maximum: TimestampOffset) -> None:
        self._max_timestamp, self._max_timestamp_offset = maximum

    @property
    def knows_max_timestamp(self) -> bool:
        """True if the largest timestamp is in memory, and needs no read of the time index."""
        return self._max_timestamp != UNKNOWN

    def _look_for_max_timestamp(self) -> None:
        """Reads the largest timestamp from the time index. Rebuilds a damaged index first, because otherwise retention
        could delete the segment early.
        """
        maximum = self.time_index.last_entry
        if not self.has_timestamp(maximum):
            self.rebuild_indexes()
        elif self._max_timestamp == UNKNOWN:
            self._max_timestamp, self._max_timestamp_offset = maximum

    def largest_timestamp(self) -> int:
        """Returns the largest timestamp, or without timestamps the file's modification time."""
        timestamp = self.max_timestamp.timestamp
        return timestamp if timestamp >= 0 else self.modified_ms()

    def modified_ms(self) -> int:
        """Returns the file's modification time."""
        info = self._disk.stat(self.path)
        return self.created_ms if info is None else info.modified_ms

    @property
    def first_timestamp(self) -> int:
        """The first batch's largest timestamp, or -1. The segment's age counts from it."""
        if self.known_first_timestamp == UNKNOWN:
            header = next((header for _, header in self.batches()), None)
            self.known_first_timestamp = NO_TIMESTAMP if header is None else header.max_timestamp
        return self.known_first_timestamp

    # Reading

    def view(self, start: int, end: int) -> memoryview:
        """Returns the bytes [start, end) of the file: a view of its mapping, or a copy at the active segment's end."""
        mapping = self._mapping
        whole = EMPTY if mapping is None else mapping.view  # read once: another thread may close the mapping meanwhile
        if mapping is None or end > len(whole):
            if start >= len(whole) and not self.sealed and self.size_bytes - len(whole) < REMAP_BYTES:
                return memoryview((self._open_file.file or self._open()).pread(end - start, start))
            mapping, whole = self._remap()
        self._loaded.add(mapping, end - start)
        return whole[start:end]

    def _remap(self) -> tuple[Mapping, memoryview]:
        """Maps all written bytes. Older mappings live as long as their views."""
        size = self.size_bytes
        whole = (self._open_file.file or SegmentFile(self._disk, self.path)).map(size) if size else EMPTY
        mapping = self._mapping = Mapping(self._disk, whole, (self.index, self.time_index) if self.sealed else ())
        self._disk.open_files.mappings.add(mapping)
        return mapping, whole

    def is_recent(self, offset: int) -> bool:
        """True if the offset is in a recently appended batch, or after all of them."""
        return self._recent.covers(offset)

    def locate(self, offset: int) -> BatchPlace | None:
        """Returns the batch with this offset, or the first batch after it; None if the segment ends before."""
        size = self.size_bytes
        position = self._position_before(offset)
        while position < size:
            mapping = self._mapping
            whole = EMPTY if mapping is None else mapping.view
            if position < len(whole):
                place = find_offset(whole, position, len(whole), offset)
            else:
                piece = self.view(position, min(size, position + READ_AHEAD_BYTES))
                place = find_offset(piece, 0, len(piece), offset)
                if isinstance(place, BatchPlace):
                    return place._replace(position=position + place.position)
                place += position
            if isinstance(place, BatchPlace):
                return place
            if place == position:
                return None
            position = place
        return None

    def _position_before(self, offset: int) -> int:
        """Returns the position from which to search the offset."""
        recent = self._recent.offsets
        if recent and offset >= recent[0]:
            return self._recent.positions[bisect_right(recent, offset) - 1]
        entry = self.index.lookup(offset)
        if entry.position and not leads_to_batch(self.view, self.base_offset, entry, self.size_bytes):
            self.rebuild_indexes()
            entry = self.index.lookup(offset)
        return entry.position

    def rebuild_indexes(self) -> None:
        """Rebuilds a damaged offset and time index from the batches. Raises OSError."""
        tell("index rebuilt", self.index.path)
        self._make_indexes(fresh=True)
        self._max_timestamp, self._max_timestamp_offset, self._indexed_at = NO_TIMESTAMP, self.base_offset, 0
        self._recent.clear()
        self._note([header for _, header in until_damage(self.batches(), self.path)], 0)
        if self.sealed:
            self._finish_indexes(sync=True)

    def read(self, offset: int, max_bytes: int, end: int, *, min_one: bool) -> memoryview | None:
        """Reads batches from this offset's batch on, up to the position `end` and to max_bytes (which may cut a
        batch).

        With `min_one` the first batch is whole, whatever its size. None if the segment ends before the offset.
        `max_bytes` comes from the client: a negative value counts as 0.
        """
        recent = self._recent.offsets
        if recent and offset >= recent[0]:
            n = bisect_right(recent, offset) - 1
            position = self._recent.positions[n]
            if end - position <= max_bytes and (n + 1 < len(recent) or offset == recent[n]):
                return self.view(position, end) if position < end else EMPTY
        place = self.locate(offset)
        if place is None:
            return None
        position = place.position
        limit = position + max(max_bytes, place.size_bytes if min_one else 0)
        return self.view(position, min(end, limit)) if position < end else EMPTY

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Yields position and header of the batches from `start`, a batch's position, up to `end`."""
        return walk(self.view, start, self.size_bytes if end is None else end)

    def has_timestamp(self, entry: TimestampOffset) -> bool:
        """True if an entry of the time index matches a batch, or if damage to the batches prevents the check."""
        try:
            place = None if entry.timestamp == NO_TIMESTAMP else self.locate(entry.offset)
            if place is None:
                return entry.timestamp == NO_TIMESTAMP
            for _, header in self.batches(place.position, place.position + place.size_bytes):
                if header.max_timestamp == entry.timestamp:
                    return True
            return False
        except KafkaError:
            return True

    # Life

    def seal(self) -> None:
        """Ends the appends: adds the largest timestamp to the time index, and writes the indexes."""
        self._finish_indexes()
        self.indexes_unsynced = True
        self.cut_back()
        self.sealed, self._mapping = True, None  # the next mapping includes the indexes
        self._recent.clear()

    def flush(self) -> bool:
        """Flushes everything written so far to the device, except the indexes of an active segment; True if files may
        have new names. May be called in a worker thread."""
        (self._open_file.file or SegmentFile(self._disk, self.path)).sync()
        new_names = self.txn_index.flush()
        if self.sealed:
            for index in (self.index, self.time_index):
                index.sync()
            new_names, self.indexes_unsynced = new_names or self.indexes_unsynced, False
            self._open_file = OpenFile()
        return new_names

    def close(self, *, sync: bool = True) -> bool:
        """Writes the indexes, durable if `sync`, and closes all files; True if the folder must be synced too."""
        has_new_names = self.txn_index.flush()
        if self.knows_max_timestamp:  # otherwise the indexes have not changed
            has_new_names |= self._finish_indexes(sync=sync) or sync
        self.cut_back()
        self.release()
        return has_new_names

    def release(self) -> None:
        """Closes files and mappings without writing. Views of the mappings stay valid."""
        self._open_file = OpenFile()
        self._mapping = None
        for index in (self.index, self.time_index):
            index.release()

    def _finish_indexes(self, *, sync: bool = False) -> bool:
        maximum = self.max_timestamp
        self.time_index.maybe_append(maximum.timestamp, maximum.offset, skip_full_check=True)
        self.index_full = self.index_full or self.time_index.is_full  # if the disk is full now, appends may go on
        replaced = self.index.seal(sync=sync)
        return self.time_index.seal(sync=sync) or replaced

    def rename(self, suffix: str) -> None:
        """Gives all of the segment's files another suffix. An index that was never written has no file yet."""
        old = self.path
        self.suffix = suffix
        self._disk.rename(old, self.path)
        for index, extension in self._indexes():
            path = self.path_of(extension)
            try:
                index.rename(path)
            except FileNotFoundError:
                index.path = path

    def relocate(self, directory: str) -> None:
        """Sets the log's new directory, after a rename."""
        self.directory = directory
        for index, _ in self._indexes():
            index.relocate(directory)

    def delete(self) -> None:
        """Deletes the files that exist. Views stay valid."""
        self._open_file = OpenFile()
        self._mapping = None
        self._disk.unlink(self.path, missing_ok=True)
        for index, _ in self._indexes():
            index.delete()

    def _indexes(self) -> Iterator[tuple[OffsetIndex | TimeIndex | TransactionIndex, str]]:
        yield self.index, names.INDEX
        yield self.time_index, names.TIME_INDEX
        yield self.txn_index, names.TXN_INDEX
