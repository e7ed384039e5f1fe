"""A simple model of a log's content: a list of entries, and the bounds that a client may rely on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Entry(NamedTuple):
    """A record, or the marker that ends a transaction (without a key)."""

    offset: int
    key: str | None
    value: str | None
    timestamp: int
    batch: tuple[int, int]
    """The first and last offset of its batch."""
    pid: int = -1
    sequence: int = -1
    """The sequence number of its batch's first record."""
    transactional: bool = False
    commit: bool | None = None
    """True if a marker commits its transaction, False if it aborts."""

    @property
    def is_marker(self) -> bool:
        return self.commit is not None


class Model:
    """The model of a log."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.end = 0
        self.start = 0
        self.acknowledged_end = 0
        """The end that survives the process."""
        self.flushed_end = 0
        """The end that survives the machine."""
        self.flushed_start = 0
        """The start offset that the checkpoint has: records below it are deleted."""
        self.may_start_at = 0
        """The highest start offset that was requested: after a crash the log may start there."""
        self.least_delete_retention_ms = 1 << 60
        self.committed_end = 0
        """The end of the compacted records: they were committed, so no leader may lack them."""
        self.clean_to = 0
        """The offset below which compaction may have removed records."""
        self.cleanings: list[tuple[int, int]] = []
        """The time and the end of each cleaning."""

    def append(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.entries[entry.offset] = entry
            self.end = entry.offset + 1

    def truncate(self, end: int) -> None:
        """Removes the entries from this offset on."""
        self.entries = {offset: entry for offset, entry in self.entries.items() if offset < end}
        self.end = end
        self.start = min(self.start, end)
        self.acknowledged_end = min(self.acknowledged_end, end)
        self.flushed_end = min(self.flushed_end, end)
        self.flushed_start = min(self.flushed_start, end)
        self.committed_end = min(self.committed_end, end)
        self.clean_to = min(self.clean_to, end)

    def in_order(self, start: int | None = None) -> list[Entry]:
        first = self.start if start is None else start
        return [self.entries[offset] for offset in sorted(self.entries) if offset >= first]

    def open_transactions(self, from_offset: int = 0) -> dict[int, int]:
        """Returns producer → first offset of the transactions that are open for a reader from that offset on."""
        open_at: dict[int, int] = {}
        for offset in sorted(offset for offset in self.entries if offset >= from_offset):
            entry = self.entries[offset]
            if entry.is_marker:
                open_at.pop(entry.pid, None)
            elif entry.transactional:
                open_at.setdefault(entry.pid, offset)
        return open_at

    def aborted(self) -> set[int]:
        """Returns the offsets of records whose transaction was aborted."""
        pending: dict[int, list[int]] = {}
        offsets: set[int] = set()
        for offset in sorted(self.entries):
            entry = self.entries[offset]
            if entry.is_marker:
                ended = pending.pop(entry.pid, [])
                offsets.update(() if entry.commit else ended)
            elif entry.transactional:
                pending.setdefault(entry.pid, []).append(offset)
        return offsets

    def latest(self) -> dict[str, Entry]:
        """Returns key → its last valid record, including tombstones."""
        aborted = self.aborted()
        last: dict[str, Entry] = {}
        for entry in self.in_order():
            if entry.key is not None and not entry.is_marker and entry.offset not in aborted:
                last[entry.key] = entry
        return last

    def last_of_producer(self, pid: int) -> Entry | None:
        """Returns the producer's last data record."""
        mine = [entry for entry in self.entries.values() if entry.pid == pid and not entry.is_marker]
        return max(mine, key=lambda entry: entry.offset, default=None)
