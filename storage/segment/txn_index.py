"""`<base offset>.txnindex`: the aborted transactions whose markers are in a segment, for read-committed consumers.

Entries of 34 bytes: version int16 = 0, producer id, first offset, last offset (the marker's), last stable offset.
Most segments have no entries and no file. Kafka classes TransactionIndex and AbortedTxn, KIP-98.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from storage.config import MAX_LONG
from storage.disk import Disk
from storage.segment.index import CorruptIndex

VERSION = 0
ENTRY = Struct(">hqqqq")
assert ENTRY.size == 34
LAST_OFFSET = Struct(">q")
LAST_OFFSET_AT = 18


class AbortedTxn(NamedTuple):
    """An aborted transaction. Its records in this partition are between first and last offset."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndexResult(NamedTuple):
    """Aborted transactions; `complete` is True if no later segment can have more for the range."""

    aborted: list[AbortedTxn]
    complete: bool


class TransactionIndex:
    """The aborted transactions of one segment, ordered by their ends. Appends write to the file immediately."""

    __slots__ = ("__weakref__", "_content", "_disk", "_size", "_unsynced", "path", "start_offset")

    def __init__(self, path: str, start_offset: int, *, disk: Disk) -> None:
        self.path = path
        self.start_offset = start_offset
        self._disk = disk
        self._size: int | None = None  # bytes of whole entries in the file; None until they are read
        self._content: bytearray | None = None
        self._unsynced = False

    @property
    def size_bytes(self) -> int:
        """Bytes of whole entries, without a torn entry at the end."""
        if self._size is None:
            info = self._disk.stat(self.path)
            self._size = 0 if info is None else info.size_bytes - info.size_bytes % ENTRY.size
        return self._size

    @property
    def is_empty(self) -> bool:
        """True if no transaction that ended in this segment was aborted."""
        return self.size_bytes == 0

    def append(self, aborted: AbortedTxn) -> None:
        """Appends a transaction, which must end after the last entry's."""
        content = self._load()
        if content:
            last = self._ended(len(content) // ENTRY.size - 1)
            assert aborted.last_offset > last, f"{self.path}: {aborted} after one that ended at {last}"
        entry = ENTRY.pack(VERSION, *aborted)
        handle = self._disk.open(self.path, create=True)
        try:
            self._disk.pwritev(handle, [entry], len(content))
        finally:
            self._disk.close(handle)
        if not content:
            self._disk.open_files.txn_indexes.add(self)
        content += entry
        self._size = len(content)
        self._unsynced = True

    def __iter__(self) -> Iterator[AbortedTxn]:
        for fields in ENTRY.iter_unpack(bytes(self._load())):
            yield self._parse(*fields)

    def collect(self, fetch_offset: int, upper_bound: int) -> TxnIndexResult:
        """Returns the transactions with records in [fetch offset, upper bound)."""
        content = self._load()
        transactions: list[AbortedTxn] = []
        first = bisect_left(range(len(content) // ENTRY.size), fetch_offset, key=self._ended)
        for position in range(first * ENTRY.size, len(content), ENTRY.size):
            aborted = self._parse(*ENTRY.unpack_from(content, position))
            if aborted.first_offset < upper_bound:
                transactions.append(aborted)
            if aborted.last_stable_offset >= upper_bound:
                return TxnIndexResult(transactions, True)
        return TxnIndexResult(transactions, False)

    def _ended(self, number: int) -> int:
        """Returns the last offset of an entry's transaction."""
        assert self._content is not None
        offset: int = LAST_OFFSET.unpack_from(self._content, number * ENTRY.size + LAST_OFFSET_AT)[0]
        return offset

    def _load(self) -> bytearray:
        """Returns all whole entries, and caches them until `close`."""
        if self._content is None:
            self._content = bytearray(self._read() if self.size_bytes else b"")
            if self._content:
                self._disk.open_files.txn_indexes.add(self)
        return self._content

    def close(self) -> None:
        """Drops the cached content. The next use reads the file again."""
        self._content = None

    def truncate_to(self, offset: int) -> None:
        """Removes the transactions that ended at this offset or beyond."""
        remaining_bytes = sum(aborted.last_offset < offset for aborted in self) * ENTRY.size
        if remaining_bytes != self.size_bytes:
            self._cut(remaining_bytes)

    def reset(self) -> None:
        """Removes all entries, before the index is rebuilt."""
        if self._disk.exists(self.path):
            self._cut(0)

    def sanity_check(self, end_offset: int = MAX_LONG) -> None:
        """Checks every entry. All transactions must end before `end_offset`. Raises CorruptIndex."""
        info = self._disk.stat(self.path)
        if info is not None and info.size_bytes % ENTRY.size:
            raise CorruptIndex(f"{self.path}: {info.size_bytes} bytes is not a multiple of {ENTRY.size}")
        low = self.start_offset
        for aborted in self:
            if not low <= aborted.last_offset < end_offset:
                raise CorruptIndex(f"{self.path}: {aborted} ended outside of offsets {low} to {end_offset - 1}")
            low = aborted.last_offset + 1

    def flush(self) -> bool:
        """Makes appended entries durable; True if there were any, because the file's name may be new."""
        if not self._unsynced:
            return False
        self._unsynced = False
        self._disk.sync_file(self.path)
        return True

    def rename(self, path: str) -> None:
        """Renames the file, if it exists."""
        if self._disk.exists(self.path):
            self._disk.rename(self.path, path)
        self.path = path

    def relocate(self, directory: str) -> None:
        """Sets the log's new directory, after a rename."""
        self.path = os.path.join(directory, os.path.basename(self.path))

    def delete(self) -> None:
        """Deletes the file, if it exists."""
        self._disk.unlink(self.path, missing_ok=True)
        self._size, self._content = 0, None
        self._unsynced = False

    def _cut(self, size_bytes: int) -> None:
        """Cuts the file in place, because it is never mapped."""
        handle = self._disk.open(self.path)
        try:
            self._disk.ftruncate(handle, size_bytes)
        finally:
            self._disk.close(handle)
        self._size, self._content = size_bytes, None
        self._unsynced = True

    def _read(self) -> bytes:
        handle = self._disk.open(self.path, writable=False)
        try:
            return self._disk.pread(handle, self.size_bytes, 0)
        finally:
            self._disk.close(handle)

    def _parse(self, version: int, *fields: int) -> AbortedTxn:
        if version != VERSION:
            raise CorruptIndex(f"{self.path}: aborted transaction of version {version}, not {VERSION}")
        return AbortedTxn(*fields)
