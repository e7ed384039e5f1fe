"""Opens a log: loads its segments, offsets, leader epochs and producers from its folder.

After a clean stop nothing is scanned, unless the log's end has changed since. Otherwise recovery checks every batch
from the recovery point on, cuts the log at the first bad batch, and rebuilds indexes, producers and epochs. Readable
records after the cut are set aside (`kept.py`). Kafka class LogLoader.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from protocol.errors import KafkaError
from protocol.records.batch import NO_PARTITION_LEADER_EPOCH
from storage.checkpoint import CorruptCheckpoint
from storage.config import MAX_LONG, LogConfig
from storage.disk import Disk
from storage.epochs import LeaderEpochCache
from storage.failure import tell
from storage.names import INDEX, LOG, TIME_INDEX, TXN_INDEX, base_offset_of, segment_file
from storage.producers.state import ProducerState
from storage.recovering.ending import check_indexes, find_end
from storage.recovering.kept import RecordKeeper, SegmentEnd
from storage.recovering.leftovers import tidy
from storage.recovering.loaded import ClosedAt, Cut, LoadedLog, Recovered
from storage.recovering.producers import rebuild_producers
from storage.recovering.scan import OffsetBounds, Scan, note_epoch, scan
from storage.segment.batches import until_damage
from storage.segment.index import CorruptIndex
from storage.segment.segment import Segment
from storage.segment.segments import Segments

BeforeCut = Callable[[Cut], None]
"""Callback before a log is cut. It saves the records that will be lost, or raises KafkaError to prevent the cut.
Without a callback, readable records are set aside (`kept.py`)."""


def load(
    directory: str,
    config: LogConfig,
    producer_state: ProducerState,
    *,
    disk: Disk,
    now_ms: int,
    recovery_point: int,
    log_start_offset: int,
    clean: bool,
    before_cut: BeforeCut | None = None,
) -> LoadedLog:
    """Opens the log in a partition's folder, or creates a log at `log_start_offset`. Raises OSError, and the errors of
    `before_cut`.
    """
    names = tidy(directory, config, disk=disk, now_ms=now_ms, clean=clean)
    producer_state.find_snapshots(names)
    opened = (_open(directory, name, config, disk, now_ms) for name in names if name.endswith(LOG))
    segments = [segment for segment in opened if segment is not None]
    if not segments:
        doubt = (
            f"{directory}: has no segment, but ended at offset {recovery_point} at the last shutdown"
            if clean and recovery_point
            else None
        )
        return _begin(directory, names, config, producer_state, disk, now_ms, log_start_offset, doubt)
    producer_state.remove_stray_snapshots([segment.base_offset for segment in segments])
    loader = _Loader(
        directory, segments, producer_state, disk, now_ms, log_start_offset, before_cut, gaps=config.compact
    )
    loader.restore_epochs()
    closed = loader.closed_at(recovery_point) if clean else None
    loader.rebuild_indexes(names, len(segments) if clean else len(loader.below(recovery_point)))
    if closed is not None:
        clean = not loader.doubts(closed)
    if not clean:
        loader.recover(recovery_point)
    return loader.finish(config, recovery_point, clean)


def _open(directory: str, name: str, config: LogConfig, disk: Disk, now_ms: int) -> Segment | None:
    offset = base_offset_of(name)
    info = disk.stat(os.path.join(directory, name))
    if offset is None or info is None:
        return None
    return Segment(directory, offset, config, disk=disk, now_ms=now_ms, size_bytes=info.size_bytes, sealed=True)


def _begin(
    directory: str,
    names: list[str],
    config: LogConfig,
    producer_state: ProducerState,
    disk: Disk,
    now_ms: int,
    offset: int,
    doubt: str | None,
) -> LoadedLog:
    """Returns a new log in a folder that has the files `names`."""
    epochs = _load_epochs(directory, disk) if names else LeaderEpochCache(directory, disk=disk)
    epochs.clear()
    segment = Segment.create(directory, offset, config, disk=disk, now_ms=now_ms)
    producer_state.truncate_fully(offset)
    nothing = Recovered(0, 0, None, (), doubt)
    segments = Segments(directory, [segment], disk=disk)
    return LoadedLog(segments, offset, offset, offset, epochs, producer_state, nothing, False, is_new=not names)


def _load_epochs(directory: str, disk: Disk) -> LeaderEpochCache:
    """Returns the leader epochs, empty if the file is damaged."""
    try:
        return LeaderEpochCache.load(directory, disk=disk)
    except CorruptCheckpoint:
        epochs = LeaderEpochCache(directory, disk=disk)
        epochs.clear()
        return epochs


class _Loader:
    """The steps of opening a log that has segments, in order."""

    def __init__(
        self,
        directory: str,
        segments: list[Segment],
        producer_state: ProducerState,
        disk: Disk,
        now_ms: int,
        log_start_offset: int,
        before_cut: BeforeCut | None,
        *,
        gaps: bool,
    ) -> None:
        """`gaps` is True if the topic is compacted, so that its log may lack offsets anywhere."""
        self.directory = directory
        self.before_cut = before_cut
        self.disk = disk
        self.now_ms = now_ms
        self.segments = Segments(directory, segments, disk=disk)
        self.log_start_offset = max(log_start_offset, self.segments.first.base_offset)
        self.producer_state = producer_state
        self.epochs = _load_epochs(directory, disk)
        self.scanned = 0
        self.bytes_scanned = 0
        self.cut: Cut | None = None
        self.dropped = False
        """True if segments were removed."""
        self.rebuilt: list[str] = []
        self.doubt: str | None = None
        self.limit = MAX_LONG
        """The largest possible log end offset."""
        self.gaps = gaps
        self.in_tail = False
        """True while segments after the recovery point are recovered."""

    def restore_epochs(self) -> None:
        """Rebuilds the leader epochs from the batches if their file is damaged or missing."""
        if self.epochs.latest_epoch is not None:
            return
        for segment in self.segments:
            for _, header in until_damage(segment.batches(), segment.path):
                if header.partition_leader_epoch == NO_PARTITION_LEADER_EPOCH:
                    return  # written before Kafka had leader epochs
                try:
                    note_epoch(self.epochs, header)
                except KafkaError as error:
                    tell("batch is damaged", segment.path, reason=error.message)
                    return

    def below(self, recovery_point: int) -> list[Segment]:
        """Returns the segments that are entirely below the recovery point, and so are on the device as written."""
        return list(self.segments)[: len(self.segments) - len(self.segments.since(recovery_point))]

    def rebuild_indexes(self, names: list[str], count: int) -> None:
        """Rebuilds the missing and damaged indexes of the first `count` segments."""
        present = frozenset(names)
        for segment in list(self.segments)[:count]:
            if self.cut is None and not self._has_indexes(segment, present):
                self.rebuilt.append(segment.path)
                self._recover(segment, is_trusted=segment is not self.segments.active)

    def _has_indexes(self, segment: Segment, names: frozenset[str]) -> bool:
        if not {segment_file(segment.base_offset, extension) for extension in (INDEX, TIME_INDEX)} <= names:
            return False
        try:
            if segment_file(segment.base_offset, TXN_INDEX) in names:
                is_active = segment is self.segments.active
                end_offset = find_end(segment).offset if is_active else self.segments.end_of(segment, MAX_LONG)
                segment.txn_index.sanity_check(end_offset)
            if segment is self.segments.active:
                check_indexes(segment)
        except (CorruptIndex, KafkaError):
            return False
        return True

    def closed_at(self, recovery_point: int) -> ClosedAt:
        """Returns the offsets at which a clean stop has closed the log: it can't end beyond them."""
        snapshot = self.producer_state.latest_snapshot_offset
        if snapshot is not None and recovery_point:
            # the checkpointed recovery point may be the offset before the log's end
            self.limit = snapshot if snapshot >= recovery_point else recovery_point + 1
        return ClosedAt(recovery_point, snapshot)

    def doubts(self, closed: ClosedAt) -> bool:
        """True if the log's end is not that of the clean stop."""
        if self.cut is None:
            self.doubt = self._difference(closed)
        return self.doubt is not None or self.cut is not None

    def _difference(self, closed: ClosedAt) -> str | None:
        active = self.segments.active
        try:
            end_offset, position = find_end(active)
        except KafkaError as error:
            return error.message
        if position != active.size_bytes:
            return f"{active.path}: {active.size_bytes - position} bytes from byte {position} on are not a whole batch"
        if end_offset < closed.recovery_point or closed.snapshot not in (None, end_offset):
            expected = max(closed.recovery_point, closed.snapshot or 0)
            return f"{active.path}: ends at offset {end_offset}, but ended at {expected} at the last shutdown"
        return None

    def recover(self, recovery_point: int) -> None:
        """Checks the segments from the recovery point on, up to the first bad batch.

        A segment that ends before the next segment's base offset has lost whole batches in a power loss, and the log is
        cut there. A compacted segment may also end early, but it has gaps inside too, and is not cut. Apache Kafka
        keeps a log with such a gap: the replica would keep the gap forever, and its consumers would not notice.
        """
        self.in_tail = True
        for segment in self.segments.since(recovery_point):
            if self.cut is None and segment in self.segments:
                scanned = self._recover(segment)
                self._drop_overlapped(segment, scanned.next_offset)
                end = self.segments.end_of(segment, scanned.next_offset)
                if self.cut is None and scanned.is_dense and scanned.next_offset < end:
                    problem = f"the next segment begins at {end}"
                    self._cut(segment, scanned.valid_bytes, scanned.next_offset, problem)
                    self._recover(segment)

    def _drop_overlapped(self, segment: Segment, next_offset: int) -> None:
        """Removes the segments that begin within this segment: files of a failed roll, whose deletion a power loss has
        undone."""
        later = [following for following in self.segments if segment.base_offset < following.base_offset < next_offset]
        with_batches = next((n for n, overlapped in enumerate(later) if overlapped.size_bytes), None)
        if with_batches is None:
            self._drop(later)
        else:  # batches that contradict the batches before them
            self._cut(
                segment, segment.size_bytes, next_offset, f"{later[with_batches].path} begins before this one ends"
            )

    def _recover(self, segment: Segment, *, is_trusted: bool = False) -> Scan:
        """Checks a segment and rebuilds its indexes. Cuts the log at a bad batch, unless the segment `is_trusted`,
        because it is below the recovery point: then the damage stays, and later batches stay too."""
        rebuild_producers(self.producer_state, self.segments, self.log_start_offset, segment.base_offset, self.now_ms)
        bounds = OffsetBounds(self._limit_of(segment), self.gaps)
        scanned = scan(segment, self.producer_state, self.epochs, bounds)
        valid_bytes, next_offset, problem, _ = scanned
        self.scanned += 1
        self.bytes_scanned += valid_bytes
        if problem is not None and is_trusted:
            tell("batch is damaged", segment.path, offset=next_offset, reason=problem)
        elif problem is not None:
            self._cut(segment, valid_bytes, next_offset, problem)
        self.producer_state.end_offset = self.segments.end_of(segment, next_offset)
        self.producer_state.take_snapshot(sync=False)
        segment.txn_index.flush()
        if segment is not self.segments.active:
            self._finish_indexes(segment)
        return scanned

    def _limit_of(self, segment: Segment) -> int:
        """Returns the base offset of the next segment that has batches, or else the largest possible log end offset."""
        base_offsets = (following.base_offset for following in self.segments if following.size_bytes)
        return next((offset for offset in base_offsets if offset > segment.base_offset), self.limit)

    def _finish_indexes(self, segment: Segment) -> None:
        """Writes the rebuilt indexes. For a segment below the recovery point, syncs them too; other segments are
        flushed after the start, like rolled segments."""
        if self.in_tail:
            segment.index.seal()
            segment.time_index.seal()
            segment.indexes_unsynced = True
        else:
            self._make_trustworthy(segment)
        segment.release()

    def _make_trustworthy(self, segment: Segment) -> None:
        """Writes and syncs the rebuilt indexes, because the segment may be below the recovery point from now on."""
        segment.index.seal(sync=True)
        segment.time_index.seal(sync=True)

    def _cut(self, segment: Segment, valid_bytes: int, next_offset: int, problem: str) -> None:
        later = [following for following in self.segments if following.base_offset > segment.base_offset]
        lost = segment.size_bytes - valid_bytes
        cut = Cut(segment.path, valid_bytes, next_offset, lost, len(later), problem)
        self.cut = self._set_aside(cut, later, SegmentEnd(segment, valid_bytes, next_offset))
        cut_in_place(segment, valid_bytes, self.disk)
        self._drop(later)

    def _set_aside(self, cut: Cut, segments: list[Segment], end: SegmentEnd | None = None) -> Cut:
        """Sets aside the readable records of whole segments, and of another segment's end, before their removal."""
        if self.before_cut is not None:
            self.before_cut(cut)
            return cut
        keeper = RecordKeeper(self.directory, self.disk)
        return cut._replace(set_aside=keeper.keep(str(cut), segments, end))

    def _drop(self, dropped: list[Segment]) -> None:
        """Deletes segments and their snapshots, after their readable records were set aside. No reader has opened them
        yet, so their files need no `.deleted` suffix."""
        if not dropped:
            return
        self.dropped = True
        self.segments.replace(dropped, [])
        for segment in dropped:
            snapshot = self.producer_state.set_snapshot_aside(segment.base_offset)
            segment.delete()
            if snapshot is not None:
                self.disk.unlink(snapshot, missing_ok=True)

    def finish(self, config: LogConfig, recovery_point: int, clean: bool) -> LoadedLog:
        """Returns the loaded log, after it has set the log's offsets and rebuilt the producer state."""
        self.segments.active.sealed = False
        log_end_offset = self._log_end_offset()
        self.segments.active.release()
        if log_end_offset < self.log_start_offset:
            tell("log start offset is beyond the log's end", self.directory, offset=self.log_start_offset)
            if clean:  # a damaged checkpoint: nothing was lost in a clean stop
                self.log_start_offset = self.segments.first.base_offset
            else:
                self._start_over(config, log_end_offset)
                log_end_offset = self.log_start_offset
        log_start_offset = self.log_start_offset
        self.epochs.truncate_from_end(log_end_offset)
        self.epochs.truncate_from_start(log_start_offset)
        self.producer_state.remove_stray_snapshots(self.segments.base_offsets)
        rebuild_producers(
            self.producer_state, self.segments, log_start_offset, log_end_offset, self.now_ms, clean=clean
        )
        active = self.segments.active
        if not clean and recovery_point >= log_end_offset > active.base_offset:  # an incomplete truncation
            self._make_trustworthy(active)
            self.dropped = True
        if self.dropped or self.producer_state.has_deleted_snapshots:
            self.disk.fsync_dir(self.directory)  # otherwise a power loss brings the removed files back
        recovery_point = log_end_offset if clean else min(recovery_point, log_end_offset)
        recovered = Recovered(self.scanned, self.bytes_scanned, self.cut, tuple(self.rebuilt), self.doubt)
        return LoadedLog(
            self.segments,
            log_start_offset,
            log_end_offset,
            recovery_point,
            self.epochs,
            self.producer_state,
            recovered,
            clean,
        )

    def _log_end_offset(self) -> int:
        """Returns the end offset of the active segment. Recovers the segment if its end is damaged."""
        active = self.segments.active
        try:
            return find_end(active).offset
        except KafkaError:
            self.rebuilt.append(active.path)
            self._recover(active)
            return find_end(active).offset

    def _start_over(self, config: LogConfig, log_end_offset: int) -> None:
        """Begins a new log at the log's start if all segments end before it. Either newer segments are gone or the
        checkpoint is damaged; recovery can't tell which, so it sets the segments aside.
        """
        old, first = list(self.segments), self.segments.first
        if any(segment.size_bytes for segment in old):
            problem = f"the log ends at offset {log_end_offset}, before its start at {self.log_start_offset}"
            cut = Cut(first.path, 0, first.base_offset, first.size_bytes, len(old) - 1, problem)
            self.cut = self._set_aside(cut, old)
        self.dropped = True
        self.epochs.clear()
        self.producer_state.truncate_fully(self.log_start_offset)
        for segment in old:
            segment.delete()
        segment = Segment.create(self.directory, self.log_start_offset, config, disk=self.disk, now_ms=self.now_ms)
        self.segments.replace(old, [segment])


def cut_in_place(segment: Segment, size_bytes: int, disk: Disk) -> None:
    """Cuts a segment's file. No view of the file may exist."""
    segment.release()
    handle = disk.open(segment.path)
    try:
        disk.ftruncate(handle, size_bytes)
        disk.fsync(handle)  # the removed bytes must not come back after later appends
    finally:
        disk.close(handle)
    segment.size_bytes = size_bytes
