"""The raft core's knowledge of its log: offsets, epochs and snapshots, without records.

Source: Kafka's ReplicatedLog.validateOffsetAndEpoch, LeaderEpochFileCache, KafkaMetadataLog.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.log_end import LogEnd
from coordinator.quorum.ready import Flush, RecoveredLog

BOOTSTRAP_SNAPSHOT: Final = SnapshotId(0, 0)
"""The snapshot of a node's own formatting, which is also in the log and is never sent."""


class Diverging(NamedTuple):
    """The replica's log diverges from this one, in which an epoch ends here."""

    end: LogEnd


class LogState:
    """The log's offsets, epochs and snapshots."""

    def __init__(self, log: RecoveredLog) -> None:
        self.start_offset = log.start_offset
        self.end_offset = log.end_offset
        self.flushed_offset = log.end_offset
        """The offset before which everything is flushed."""
        self.snapshots = list(log.snapshots)
        self.generation = 0
        """Number of truncations, by which late answers and late flushes are recognized."""
        self._epochs = [LogEnd(offset, epoch) for epoch, offset in log.epochs]
        self._continue_snapshot()

    def _continue_snapshot(self) -> None:
        """Sets the epoch of a log that ends at a snapshot and has no records: records of the same epoch may follow."""
        if not self._epochs:
            ends = (snapshot for snapshot in self.snapshots if 0 < snapshot.offset == self.end_offset)
            self._epochs = [LogEnd(snapshot.offset, snapshot.epoch) for snapshot in ends]

    @property
    def end(self) -> LogEnd:
        """The log's end, and the epoch of the record before it. A log without records has its snapshot's epoch."""
        if self._epochs:
            return LogEnd(self.end_offset, self._epochs[-1].epoch)
        epochs = (snapshot.epoch for snapshot in reversed(self.snapshots) if snapshot.offset == self.end_offset)
        return LogEnd(self.end_offset, next(epochs, 0))

    @property
    def is_flushed(self) -> bool:
        """True if the whole log is flushed."""
        return self.flushed_offset >= self.end_offset

    @property
    def flush_token(self) -> Flush:
        """The token of a flush of the whole log."""
        return Flush(self.end_offset, self.generation)

    def epoch_end(self, epoch: int) -> LogEnd:
        """Returns the last epoch up to this epoch that the log has, and its end offset. An epoch whose records are no
        longer in the log ends at the oldest snapshot."""
        end = self._epoch_end(epoch)
        if self.snapshots and end == LogEnd(self.snapshots[0].offset, epoch):
            return LogEnd(self.snapshots[0].offset, self.snapshots[0].epoch)
        return end

    def _epoch_end(self, epoch: int) -> LogEnd:
        before: LogEnd | None = None
        for start in self._epochs:
            if start.epoch > epoch:
                return LogEnd(start.offset, epoch if before is None else before.epoch)
            before = start
        return self.end if before is None or before.epoch < epoch else LogEnd(self.end_offset, epoch)

    def truncation_point(self, diverging: LogEnd) -> int:
        """Returns the offset at which this log diverges from a leader's, in which that epoch ends at that offset."""
        own = self.epoch_end(diverging.epoch)
        return min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset

    def check(self, offset: int, epoch: int) -> SnapshotId | Diverging | None:
        """Returns the snapshot that a replica with this end must fetch, or where its log diverges; None if it may
        fetch from there."""
        newest = self.snapshots[-1] if self.snapshots else None
        if offset == 0 and newest is not None and newest != BOOTSTRAP_SNAPSHOT:
            return newest
        if offset == 0 and self.start_offset == 0:
            return None
        if newest is not None:
            start, oldest = self.start_offset, self.snapshots[0]
            if offset < start or (offset == start and epoch != oldest.epoch) or epoch < oldest.epoch:
                return newest
        end = self.epoch_end(epoch)
        return Diverging(end) if end.epoch != epoch or end.offset < offset else None

    def append(self, epochs: Sequence[LogEnd], next_offset: int) -> None:
        """Adds batches: their first offsets and epochs, and the offset after them."""
        for start in epochs:
            if not self._epochs or start.epoch > self._epochs[-1].epoch:
                self._epochs.append(start)
        self.end_offset = next_offset

    def truncate(self, offset: int) -> None:
        """Truncates the log to this offset."""
        self.end_offset = offset
        self.flushed_offset = min(self.flushed_offset, offset)
        self.generation += 1
        while self._epochs and self._epochs[-1].offset >= offset:
            self._epochs.pop()
        self._continue_snapshot()

    def replace(self, snapshot_id: SnapshotId) -> None:
        """Replaces the whole log by a snapshot."""
        self.start_offset = self.end_offset = self.flushed_offset = snapshot_id.offset
        self.generation += 1
        self._epochs = [LogEnd(snapshot_id.offset, snapshot_id.epoch)]
        self.snapshots = [snapshot_id]

    def cut(self, start_offset: int, snapshots: Sequence[SnapshotId]) -> None:
        """Moves the log start, and replaces the list of snapshots."""
        self.snapshots = list(snapshots)
        self.start_offset = max(start_offset, self.start_offset)
        before = [start for start in self._epochs if start.offset <= self.start_offset]
        if before:
            self._epochs[: len(before)] = [LogEnd(self.start_offset, before[-1].epoch)]

    def flushed(self, flush: Flush) -> None:
        """Counts a flush, if the log wasn't truncated since it began."""
        if flush.generation == self.generation:
            self.flushed_offset = max(self.flushed_offset, min(flush.end_offset, self.end_offset))
