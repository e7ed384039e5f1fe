"""The sparse indexes of a segment: sorted fixed-width entries, searched by bisection.

`SegmentIndex` is the common base of the offset index (here) and the time index. The index of the active segment keeps
its entries in memory and writes new entries at `flush`; recovery rebuilds the index of any segment past the recovery
point, so no entry is lost. The index of a sealed segment is mapped at its first lookup: opening a log reads no index.

The file format is Kafka's (OffsetIndex, AbstractIndex): big-endian entries, offsets relative to the segment's base.
Kafka preallocates an active index with zeros and trims it on roll and close. Odradek does not preallocate, which Kafka
accepts: it resizes the file.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from storage.disk import Disk

MAX_RELATIVE_OFFSET: Final = 0x7FFFFFFF
"""Maximum number of offsets in a segment, because an index entry stores the relative offset as int32."""


NEAR_ENTRIES: Final = 16
"""Entries on each side of the estimated position that are searched first."""

_INDEX_ENTRY: Final = Struct(">ii")


class CorruptIndex(Exception):
    """A damaged index file. The segment's indexes must be rebuilt from its batches."""


class OffsetPosition(NamedTuple):
    """An entry of the offset index: a batch's last offset, and the batch's position."""

    offset: int
    position: int


class SegmentIndex:
    """Sorted fixed-width entries in one file, whatever their meaning.

    `max_size_bytes` is `segment.index.bytes`. The index is loaded at its first use, not at its construction.
    """

    ENTRY: Struct
    KEPT_FREE = 0
    """Number of entries that appends leave free."""
    __slots__ = (
        "_active", "_disk", "_flushed_bytes", "_full_bytes", "_replace", "_unsynced", "_view", "base_offset",
        "max_entries", "path",
    )  # fmt: skip

    def __init__(self, path: str, base_offset: int, *, disk: Disk, max_size_bytes: int, fresh: bool = False) -> None:
        """Creates an index of the file at `path`. With `fresh` it starts empty, and replaces an existing file."""
        self.path = path
        self.base_offset = base_offset
        self.max_entries = max_size_bytes // self.ENTRY.size
        self._full_bytes = (self.max_entries - self.KEPT_FREE) * self.ENTRY.size
        self._disk = disk
        self._active: bytearray | None = bytearray() if fresh else None
        self._view: bytearray | memoryview | None = self._active
        self._flushed_bytes = 0
        self._replace = fresh
        self._unsynced = False

    @property
    def is_in_memory(self) -> bool:
        """True if a lookup needs neither a file nor a mapping, whose pages may have to be read."""
        return self._active is not None

    @property
    def entries(self) -> int:
        """Number of entries."""
        return len(self._entries()) // self.ENTRY.size

    @property
    def size_bytes(self) -> int:
        """Size of all entries in bytes."""
        return self.entries * self.ENTRY.size

    @property
    def is_full(self) -> bool:
        """True if the segment must roll because the index has no space for an entry."""
        return len(self._entries()) >= self._full_bytes

    def flush(self, *, sync: bool = True) -> bool:
        """Writes the entries since the last flush; with `sync`, makes all entries durable. True if a file with entries
        was replaced: until the folder is synced, a power loss brings the old file back.

        An index without entries is not synced, because a missing index file is rebuilt.
        """
        active = self._active
        if active is None or (len(active) == self._flushed_bytes and not self._replace):
            if sync and self._unsynced:
                self.sync()
            return False
        file = self._disk.stat(self.path) if self._replace else None
        if file is not None and not file.size_bytes and not active:
            self._replace = False
            return False
        replaces = file is not None and file.size_bytes > 0
        self._unsynced = bool(active)
        if file is not None:
            self._disk.unlink(self.path, missing_ok=True)
        handle = self._disk.open(self.path, create=True)
        try:
            end = len(active)
            self._disk.pwritev(handle, [active[self._flushed_bytes : end]], self._flushed_bytes)
            if sync and active:
                self._disk.fsync(handle)
                self._unsynced = False
        finally:
            self._disk.close(handle)
        if self._active is active:  # not truncated meanwhile
            self._flushed_bytes = end
            self._replace = False
        return replaces

    def sync(self) -> None:
        """Flushes the file to the device."""
        self._unsynced = False
        self._disk.sync_file(self.path)

    def seal(self, *, sync: bool = False) -> bool:
        """Writes the rest of the entries, as `flush` does, and releases the memory. For a segment that gets no more
        appends."""
        replaced = self.flush(sync=sync)
        self.release()
        return replaced

    def close(self) -> None:
        """Writes the rest of the entries and releases everything. A later use loads the file again."""
        self.seal()

    def release(self) -> None:
        """Releases the mapping, or the memory of a flushed index."""
        if self._active is not None and (self._replace or len(self._active) != self._flushed_bytes):
            return
        self._active = None
        self._view = None

    def rename(self, path: str) -> None:
        """Renames the file, as when a cleaned segment is swapped in or a deleted segment is set aside."""
        if not self._replace:
            self._disk.rename(self.path, path)
        self.path = path

    def relocate(self, directory: str) -> None:
        """Sets the log's new directory, after a rename."""
        self.path = os.path.join(directory, os.path.basename(self.path))

    def delete(self) -> None:
        """Deletes the file, if it exists."""
        self._active = None
        self._view = None
        self._unsynced = False
        self._disk.unlink(self.path, missing_ok=True)

    def reset(self) -> None:
        """Removes all entries, before the index is rebuilt."""
        self._truncate_to_entries(0)

    def _entries(self) -> bytearray | memoryview:
        view = self._view
        return self._load() if view is None else view

    def _load(self) -> bytearray | memoryview:
        """Maps the file. Ignores an incomplete entry at its end, which `sanity_check` rejects."""
        view: bytearray | memoryview = bytearray()
        if self._disk.exists(self.path):
            handle = self._disk.open(self.path, writable=False)
            try:
                size = self._disk.size(handle)
                if size:
                    view = self._disk.mmap(handle, size)
            finally:
                self._disk.close(handle)
        self._view = view
        return view

    def _activate(self) -> bytearray:
        """Returns the entries as memory that can be appended to."""
        if self._active is None:
            entries = self._entries()
            whole = len(entries) - len(entries) % self.ENTRY.size
            self._active = self._view = bytearray(entries[:whole])
            self._flushed_bytes = whole
            self._replace = whole != len(entries)
            if self._replace:
                self._flushed_bytes = 0
        return self._active

    def _truncate_to_entries(self, entries: int) -> None:
        """Keeps the first entries. The file is rewritten, not cut, because a reader may have mapped it."""
        kept_bytes = entries * self.ENTRY.size
        present = self._entries()
        if len(present) == kept_bytes:
            return
        remaining = bytearray(present[:kept_bytes])
        self._active = self._view = remaining
        self._flushed_bytes = 0
        self._replace = True
        self._unsynced = False
        self._disk.unlink(self.path, missing_ok=True)

    def _check_size(self) -> None:
        size = len(self._entries())
        if size % self.ENTRY.size:
            raise CorruptIndex(f"{self.path}: {size} bytes is not a multiple of an entry's {self.ENTRY.size}")

    def _last_at_or_below(self, target: int, field: int) -> int:
        """Returns the number of the last entry whose field is <= target, or -1."""
        entries = self._entries()
        count, value = len(entries) // self.ENTRY.size, self._column(entries, field)
        if not count or value(0) > target:
            return -1
        if value(count - 1) <= target:
            return count - 1  # most readers read at the end
        low, high = self._near(target, value, count)
        return bisect_right(range(count), target, low, high, key=value) - 1

    @staticmethod
    def _near(target: int, value: Callable[[int], int], count: int) -> tuple[int, int]:
        """Returns a small range of entries to bisect, because each comparison costs time. The range is estimated as if
        the values grew evenly.
        """
        first = value(0)
        guess = (target - first) * count // (value(count - 1) - first + 1)
        if value(guess) <= target:
            beyond = guess + NEAR_ENTRIES
            return guess, beyond if beyond < count and value(beyond) > target else count
        before = guess - NEAR_ENTRIES
        return before if before > 0 and value(before) <= target else 0, guess

    def _first_at_or_above(self, target: int, field: int) -> int:
        """Returns the number of the first entry whose field is >= target, or `entries`."""
        entries = self._entries()
        return bisect_left(range(len(entries) // self.ENTRY.size), target, key=self._column(entries, field))

    def _column(self, entries: bytearray | memoryview, field: int) -> Callable[[int], int]:
        """Returns a function from an entry's number to one of its fields, for bisection."""
        width, unpack = self.ENTRY.size, self.ENTRY.unpack_from
        return lambda n: unpack(entries, n * width)[field]

    def _is_sorted(self, field: int, *, strictly: bool) -> bool:
        values = [entry[field] for entry in self.ENTRY.iter_unpack(self._entries())]
        following = values[1:]
        return all(a < b if strictly else a <= b for a, b in zip(values, following, strict=False))


class OffsetIndex(SegmentIndex):
    """`<base offset>.index`: maps an offset to the position in the segment file from which to search it.

    Entries of 8 bytes: relative offset int32, position int32. Kafka class OffsetIndex.
    """

    ENTRY = _INDEX_ENTRY
    __slots__ = ("_last_lookup",)

    def __init__(self, path: str, base_offset: int, *, disk: Disk, max_size_bytes: int, fresh: bool = False) -> None:
        super().__init__(path, base_offset, disk=disk, max_size_bytes=max_size_bytes, fresh=fresh)
        self._last_lookup: tuple[int, int, OffsetPosition] | None = None
        """Offset, size of the index and entry of the last lookup. A read looks up twice: first to check whether its
        pages are in memory, then to read them."""

    @property
    def last_offset(self) -> int:
        """The offset of the last entry, or the base offset without entries."""
        entries = self.entries
        return self.entry(entries - 1).offset if entries else self.base_offset

    def entry(self, n: int) -> OffsetPosition:
        """Returns the n-th entry."""
        relative_offset, position = self.ENTRY.unpack_from(self._entries(), n * 8)
        return OffsetPosition(self.base_offset + relative_offset, position)

    def __iter__(self) -> Iterator[OffsetPosition]:
        for n in range(self.entries):
            yield self.entry(n)

    def lookup(self, offset: int) -> OffsetPosition:
        """Returns the entry with the largest offset <= `offset`, or (base offset, 0)."""
        last, size = self._last_lookup, len(self._entries())
        if last is not None and last[0] == offset and last[1] == size:
            return last[2]
        n = self._last_at_or_below(offset - self.base_offset, 0)
        entry = OffsetPosition(self.base_offset, 0) if n < 0 else self.entry(n)
        self._last_lookup = offset, size, entry
        return entry

    def upper_bound(self, position: int) -> OffsetPosition | None:
        """Returns the first entry at or beyond a position in the segment file, or None."""
        n = self._first_at_or_above(position, 1)
        return self.entry(n) if n < self.entries else None

    def append(self, offset: int, position: int) -> None:
        """Appends an entry. The index must not be full, and offsets must increase."""
        active = self._active
        if active is None:
            active = self._activate()
        relative_offset = offset - self.base_offset
        assert len(active) < self._full_bytes, f"{self.path}: append to a full index"
        assert not active or relative_offset > _INDEX_ENTRY.unpack_from(active, len(active) - 8)[0], (
            f"{self.path}: offset {offset} after {self.last_offset}"
        )
        active += _INDEX_ENTRY.pack(relative_offset, position)

    def truncate_to(self, offset: int) -> None:
        """Removes the entries for this offset and beyond."""
        self._last_lookup = None
        self._truncate_to_entries(self._first_at_or_above(offset - self.base_offset, 0))

    def reset(self) -> None:
        self._last_lookup = None
        super().reset()

    def sanity_check(self) -> None:
        """Makes the cheap checks of opening a log. Raises CorruptIndex."""
        self._check_size()
        entries = self.entries
        last_offset = self.last_offset
        if entries and last_offset < self.base_offset:
            raise CorruptIndex(f"{self.path}: last offset {last_offset} is below the base offset {self.base_offset}")
        if entries > 1 and last_offset <= self.entry(entries - 2).offset:
            raise CorruptIndex(f"{self.path}: offset {last_offset} of the last entry is not above the previous entry")

    def verify(self) -> None:
        """Checks every entry. Raises CorruptIndex."""
        self.sanity_check()
        if not (self._is_sorted(0, strictly=True) and self._is_sorted(1, strictly=True)):
            raise CorruptIndex(f"{self.path}: entries are out of order")
