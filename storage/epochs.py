"""`leader-epoch-checkpoint`: the start offset of each leader epoch of a partition.

Followers and clients use it to find the offset at which two logs diverged (KIP-101, KIP-279, KIP-320). Kafka class
LeaderEpochFileCache.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from storage.checkpoint import parse_number, read_entries, write_entries
from storage.config import MAX_LONG
from storage.disk import Disk

LEADER_EPOCHS = "leader-epoch-checkpoint"

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class EpochEntry(NamedTuple):
    """A leader epoch and its start offset: the offset of the first record written in it."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """An epoch, and the offset after its last record; both -1 if unknown."""

    epoch: int
    end_offset: int


class LeaderEpochCache:
    """The leader epochs of one log. Both the epochs and their start offsets increase.

    Changes stay in memory until `flush`, so that an append never waits for this file. The log flushes them before its
    recovery point moves; recovery assigns the epochs of the batches after the recovery point again.
    """

    __slots__ = ("_disk", "_epochs", "_offsets", "_written_below", "path")

    def __init__(self, directory: str, *, disk: Disk) -> None:
        self.path = os.path.join(directory, LEADER_EPOCHS)
        self._written_below = MAX_LONG
        """The offset below which the file has exactly the epochs that are in memory."""
        self._disk = disk
        self._epochs: list[int] = []
        self._offsets: list[int] = []

    @classmethod
    def load(cls, directory: str, *, disk: Disk) -> LeaderEpochCache:
        """Returns the epochs in a log's folder, which are empty without a file. Raises CorruptCheckpoint."""
        cache = cls(directory, disk=disk)
        for epoch, start_offset in read_entries(disk, cache.path, _parse, "'<epoch> <start offset>'"):
            cache.assign(epoch, start_offset)
        cache._written_below = MAX_LONG
        return cache

    @property
    def dirty(self) -> bool:
        """True while the file lacks an epoch, or has an epoch that was removed."""
        return self._written_below < MAX_LONG

    def is_written_below(self, end_offset: int) -> bool:
        """True if the file has the epochs of all records of a log that ends at this offset. An epoch that starts at the
        log's end has no records; opening the log removes it."""
        return self._written_below >= end_offset

    @property
    def entries(self) -> list[EpochEntry]:
        """All entries, oldest first."""
        return list(map(EpochEntry, self._epochs, self._offsets))

    @property
    def latest_epoch(self) -> int | None:
        """The newest epoch, or None without entries."""
        return self._epochs[-1] if self._epochs else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Adds an epoch that starts at the offset; True on change.

        Removes the entries that contradict it: later epochs, and entries with an equal or larger start offset.
        """
        assert min(epoch, start_offset) >= 0, f"{self.path}: epoch {epoch} at offset {start_offset}"
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._offsets[-1]:
            return False
        self._keep(slice(0, min(bisect_left(self._epochs, epoch), bisect_left(self._offsets, start_offset))))
        self._epochs.append(epoch)
        self._offsets.append(start_offset)
        self._differs_from(start_offset)
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Returns the answer to OffsetForLeaderEpoch: the largest epoch <= `epoch`, and its end offset.

        The newest epoch ends at the log end offset. For an epoch older than all entries, returns that epoch and the
        start offset of the oldest entry; for an undefined epoch, or an epoch newer than all entries, (-1, -1).
        """
        if epoch == UNDEFINED_EPOCH:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, log_end_offset)
        higher = bisect_right(self._epochs, epoch)
        if higher == len(self._epochs):
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)
        return EpochEnd(self._epochs[higher - 1] if higher else epoch, self._offsets[higher])

    def epoch_for_offset(self, offset: int) -> int | None:
        """Returns the epoch in which the record at this offset was written, or None if it is older than all entries."""
        n = bisect_right(self._offsets, offset) - 1
        return self._epochs[n] if n >= 0 else None

    def truncate_from_end(self, end_offset: int) -> bool:
        """Removes the epochs that start at the log's new end offset or later; True on change."""
        keep = bisect_left(self._offsets, end_offset)
        if end_offset < 0 or keep == len(self._offsets):
            return False
        self._keep(slice(0, keep))
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Removes the epochs that end before the log's new start offset, and moves the start of the epoch that contains
        it. True on change."""
        first = bisect_right(self._offsets, start_offset) - 1
        if first < 0 or (first == 0 and self._offsets[0] == start_offset):
            return False
        self._keep(slice(first, None))
        self._offsets[0] = start_offset
        self._differs_from(0)
        return True

    def clear(self) -> None:
        """Removes all epochs; the next flush empties the file."""
        self._keep(slice(0, 0))
        self._differs_from(0)

    def flush(self, *, sync: bool = True) -> None:
        """Writes the file atomically, if any epoch changed since the last flush."""
        if not self.dirty:
            return
        before, self._written_below = self._written_below, MAX_LONG
        lines = [f"{epoch} {offset}" for epoch, offset in zip(self._epochs, self._offsets, strict=True)]
        try:
            write_entries(self._disk, self.path, lines, sync=sync)
        except OSError:
            self._differs_from(before)
            raise

    def relocate(self, directory: str) -> None:
        """Sets the log's new directory, after a rename."""
        self.path = os.path.join(directory, LEADER_EPOCHS)

    def _keep(self, entries: slice) -> None:
        dropped = self._offsets[entries.stop :] if entries.stop is not None else ()
        self._epochs = self._epochs[entries]
        self._offsets = self._offsets[entries]
        if dropped and dropped[0] < self._written_below:
            self._differs_from(0)

    def _differs_from(self, offset: int) -> None:
        self._written_below = min(self._written_below, offset)


def _parse(line: str) -> EpochEntry:
    epoch, start_offset = map(parse_number, line.split())
    return EpochEntry(epoch, start_offset)
