"""Opening a log: what its folder holds becomes segments, offsets, epochs and producers.

After a clean stop nothing is scanned, unless the end is not where the stop left it. Otherwise every batch from the
recovery point on is checked, the log is cut where the first bad one begins, and indexes, producers and epochs are
rebuilt. What can be read behind the cut is set aside (`kept.py`). Kafka class LogLoader.
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
"""Called before a log is cut: keeps what is going to be lost, or raises KafkaError if the log must stay as it is.
Without it, what can be read is set aside (`kept.py`)."""


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
    """Open what is in a partition's folder, or begin it at `log_start_offset`. Raises OSError, and what `before_cut`
    raises."""
    names = tidy(directory, config, disk=disk, now_ms=now_ms, clean=clean)
    producer_state.find_snapshots(names)
    opened = (_open(directory, name, config, disk, now_ms) for name in names if name.endswith(LOG))
    segments = [segment for segment in opened if segment is not None]
    if not segments:
        doubt = f"{directory}: has no segment, where {recovery_point} was the end" if clean and recovery_point else None
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
    """Returns a new log, in a folder of files with these names."""
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
    """The steps of opening a log that has segments, in their order."""

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
        """`gaps` is True if the topic is compacted, and its log may lack offsets anywhere."""
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
        """True when segments were removed."""
        self.rebuilt: list[str] = []
        self.doubt: str | None = None
        self.limit = MAX_LONG
        """The log cannot end beyond this offset."""
        self.gaps = gaps
        self.in_tail = False
        """True while the segment that is recovered lies behind the recovery point."""

    def restore_epochs(self) -> None:
        """Reads the leader epochs off the batches if their file was damaged or is missing."""
        if self.epochs.latest_epoch is not None:
            return
        for segment in self.segments:
            for _, header in until_damage(segment.batches(), segment.path):
                if header.partition_leader_epoch == NO_PARTITION_LEADER_EPOCH:
                    return  # of a time before there were epochs
                try:
                    note_epoch(self.epochs, header)
                except KafkaError as error:
                    tell("batch is damaged", segment.path, reason=error.message)
                    return

    def below(self, recovery_point: int) -> list[Segment]:
        """Returns the segments that are wholly below the recovery point, and so are on the disk as they were
        written."""
        return list(self.segments)[: len(self.segments) - len(self.segments.since(recovery_point))]

    def rebuild_indexes(self, names: list[str], count: int) -> None:
        """Make the indexes of the first `count` segments anew where a file is missing or cannot be right."""
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
            # the checkpoint may leave out the last offset
            self.limit = snapshot if snapshot >= recovery_point else recovery_point + 1
        return ClosedAt(recovery_point, snapshot)

    def doubts(self, closed: ClosedAt) -> bool:
        """True if the log does not end where a clean stop has left it."""
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
            return f"{active.path}: {active.size_bytes - position} bytes from byte {position} on are no whole batch"
        if end_offset < closed.recovery_point or closed.snapshot not in (None, end_offset):
            expected = max(closed.recovery_point, closed.snapshot or 0)
            return f"{active.path}: ends at offset {end_offset}, where {expected} was the end"
        return None

    def recover(self, recovery_point: int) -> None:
        """Check the segments from the recovery point on, up to the first bad batch.

        A segment that ends too early for the next one has lost its end with the power, though that end was at a batch;
        but compaction leaves such ends too, and inside of which it leaves gaps. Apache Kafka keeps such a log with its
        gap; a replica would keep it for good, and its readers would not notice.
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
        """Drops segments that begin within this one: files of a roll that failed, whose removal was lost with the
        power."""
        later = [other for other in self.segments if segment.base_offset < other.base_offset < next_offset]
        with_batches = next((n for n, other in enumerate(later) if other.size_bytes), None)
        if with_batches is None:
            self._drop(later)
        else:  # batches that contradict those before them
            self._cut(
                segment, segment.size_bytes, next_offset, f"{later[with_batches].path} begins before this one ends"
            )

    def _recover(self, segment: Segment, *, is_trusted: bool = False) -> Scan:
        """Check one segment and rebuild its indexes; what comes after a bad batch goes, unless the segment `is_trusted`
        to be as it was written: then damage stays where it is, and takes nothing else with it."""
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
        """Returns the offset at which the next segment that has batches begins, or beyond which no log can end."""
        later = (other for other in self.segments if other.base_offset > segment.base_offset and other.size_bytes)
        return next((other.base_offset for other in later), self.limit)

    def _finish_indexes(self, segment: Segment) -> None:
        """Have the indexes that were made anew in their files; on the device too, if the segment is one of those that
        are trusted. The others are flushed like segments that have been rolled, after the start."""
        if self.in_tail:
            segment.index.seal()
            segment.time_index.seal()
            segment.indexes_unsynced = True
        else:
            self._make_trustworthy(segment)
        segment.release()

    def _make_trustworthy(self, segment: Segment) -> None:
        """Have indexes that were made anew on the device: the segment may be below the recovery point from now on."""
        segment.index.seal(sync=True)
        segment.time_index.seal(sync=True)

    def _cut(self, segment: Segment, valid_bytes: int, next_offset: int, problem: str) -> None:
        later = [other for other in self.segments if other.base_offset > segment.base_offset]
        lost = segment.size_bytes - valid_bytes
        cut = Cut(segment.path, valid_bytes, next_offset, lost, len(later), problem)
        self.cut = self._set_aside(cut, later, SegmentEnd(segment, valid_bytes, next_offset))
        cut_in_place(segment, valid_bytes, self.disk)
        self._drop(later)

    def _set_aside(self, cut: Cut, segments: list[Segment], end: SegmentEnd | None = None) -> Cut:
        """Keeps what can be read of whole segments and of the end of another, before they go."""
        if self.before_cut is not None:
            self.before_cut(cut)
            return cut
        keeper = RecordKeeper(self.directory, self.disk)
        return cut._replace(set_aside=keeper.keep(str(cut), segments, end))

    def _drop(self, dropped: list[Segment]) -> None:
        """Take segments out, with their snapshots: what can be read of them has been set aside. No reader has them yet,
        so they can go at once."""
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
        """Returns the loaded log: where it begins and ends, and its producers up to there."""
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
        if not clean and recovery_point >= log_end_offset > active.base_offset:  # a truncation that was not completed
            self._make_trustworthy(active)
            self.dropped = True
        if self.dropped or self.producer_state.has_deleted_snapshots:
            self.disk.fsync_dir(self.directory)  # or what was removed comes back with the next loss of power
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
        """Returns where the active segment ends; should it turn out to be damaged after all, it is recovered."""
        active = self.segments.active
        try:
            return find_end(active).offset
        except KafkaError:
            self.rebuilt.append(active.path)
            self._recover(active)
            return find_end(active).offset

    def _start_over(self, config: LogConfig, log_end_offset: int) -> None:
        """Begins a new log at the log's start if all segments end before it: newer segments are gone, or the checkpoint
        is damaged. Which of the two can't be told, so the segments are set aside."""
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
    """Cut a segment's file, of which nobody has a view."""
    segment.release()
    handle = disk.open(segment.path)
    try:
        disk.ftruncate(handle, size_bytes)
        disk.fsync(handle)  # what was cut must not come back behind what is appended in its place
    finally:
        disk.close(handle)
    segment.size_bytes = size_bytes
