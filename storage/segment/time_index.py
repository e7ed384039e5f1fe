"""`<base offset>.timeindex`: maps a timestamp to the offset from which to search it.

Entries of 12 bytes: timestamp int64 in ms, relative offset int32. An entry (t, o) means that every record up to offset
o has a timestamp <= t. Timestamps and offsets increase. Kafka class TimeIndex, KIP-33.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from storage.segment.index import CorruptIndex, SegmentIndex

NO_TIMESTAMP = -1

_ENTRY = Struct(">qi")


class TimestampOffset(NamedTuple):
    """The largest timestamp up to an offset, and the offset of the record that has it."""

    timestamp: int
    offset: int


class TimeIndex(SegmentIndex):
    """The time index of one segment."""

    ENTRY = _ENTRY
    KEPT_FREE = 1  # for the entry that is written when the segment rolls
    __slots__ = ()

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry, or (-1, base offset)."""
        entries = self.entries
        return self.entry(entries - 1) if entries else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def entry(self, n: int) -> TimestampOffset:
        """Returns the n-th entry."""
        timestamp, relative_offset = self.ENTRY.unpack_from(self._entries(), n * 12)
        return TimestampOffset(timestamp, self.base_offset + relative_offset)

    def __iter__(self) -> Iterator[TimestampOffset]:
        for n in range(self.entries):
            yield self.entry(n)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Returns the entry with the largest timestamp <= `timestamp`, or (-1, base offset)."""
        n = self._last_at_or_below(timestamp, 0)
        return TimestampOffset(NO_TIMESTAMP, self.base_offset) if n < 0 else self.entry(n)

    def maybe_append(self, timestamp: int, offset: int, *, skip_full_check: bool = False) -> None:
        """Appends an entry if the timestamp is larger than the last entry's.

        `skip_full_check` is for the last entry of a segment that rolls. Neither value may decrease.
        """
        active = self._active
        if active is None:
            active = self._activate()
        assert skip_full_check or len(active) < self._full_bytes, f"{self.path}: append to a full index"
        relative_offset, last_timestamp = offset - self.base_offset, NO_TIMESTAMP
        if active:
            last_timestamp, last_offset = _ENTRY.unpack_from(active, len(active) - 12)
            assert relative_offset >= last_offset, f"{self.path}: offset {offset} after {self.last_entry.offset}"
            assert timestamp >= last_timestamp, f"{self.path}: timestamp {timestamp} after {last_timestamp}"
        if timestamp > last_timestamp:
            active += _ENTRY.pack(timestamp, relative_offset)

    def truncate_to(self, offset: int) -> None:
        """Removes the entries for this offset and beyond."""
        self._truncate_to_entries(self._first_at_or_above(offset - self.base_offset, 1))

    def sanity_check(self) -> None:
        """Makes the cheap checks of opening a log. Raises CorruptIndex."""
        self._check_size()
        entries = self.entries
        if not entries:
            return
        first, last = self.entry(0), self.last_entry
        if last.timestamp < first.timestamp:
            raise CorruptIndex(f"{self.path}: last timestamp {last.timestamp} is below the first, {first.timestamp}")
        if last.offset < self.base_offset:
            raise CorruptIndex(f"{self.path}: last offset {last.offset} is below the base offset {self.base_offset}")
        if entries > 1 and last.timestamp <= self.entry(entries - 2).timestamp:
            raise CorruptIndex(f"{self.path}: the last timestamp, {last.timestamp}, is not above the one before it")

    def verify(self) -> None:
        """Checks every entry. Raises CorruptIndex."""
        self.sanity_check()
        if not (self._is_sorted(0, strictly=True) and self._is_sorted(1, strictly=False)):
            raise CorruptIndex(f"{self.path}: entries are out of order")
