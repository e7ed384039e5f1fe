"""Opening a log: what its folder holds becomes segments, offsets, epochs and producers.

After a clean stop nothing is scanned. Otherwise every batch from the recovery point on is checked, the log is cut
where the first bad one begins, and indexes, producers and epochs are rebuilt. Kafka class LogLoader.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from protocol.errors import KafkaError
from protocol.records.batch import CONTROL
from storage.checkpoint import CorruptCheckpoint
from storage.config import LogConfig
from storage.disk import Disk
from storage.epochs import LeaderEpochCache
from storage.failure import tell
from storage.markers import marker_in
from storage.names import INDEX, LOG, TIME_INDEX, TXN_INDEX, base_offset_of, segment_file
from storage.producers.state import ProducerBatch, ProducerState
from storage.recovering.leftovers import tidy
from storage.recovering.scan import Scan, scan
from storage.segment.index import CorruptIndex
from storage.segment.segment import Segment
from storage.segment.segments import Segments


class Cut(NamedTuple):
    """Where a log was cut, for its operator to be told."""

    path: str
    position: int
    """The segment file's size now."""
    offset: int
    """The first offset that is gone."""
    bytes_lost: int
    segments_lost: int
    reason: str

    def __str__(self) -> str:
        more = f" and {self.segments_lost} later segments" if self.segments_lost else ""
        where = f"byte {self.position}, offset {self.offset}"
        return f"{self.path}: cut {self.bytes_lost} bytes{more} from {where} on: {self.reason}"


BeforeCut = Callable[[Cut], None]
"""Called before a log is cut: keeps what is going to be lost, or raises KafkaError if the log must stay as it is."""


def cut_at_once(_: Cut) -> None:
    """Leaves nothing of what is cut."""


class Recovered(NamedTuple):
    """The report of opening a log after an unclean stop."""

    segments: int
    """How many were scanned."""
    bytes_scanned: int
    cut: Cut | None
    rebuilt: tuple[str, ...]
    """Segments whose missing or damaged indexes were made anew, though they needed no recovery."""


class LoadedLog(NamedTuple):
    """A log as it was found, or made."""

    segments: Segments
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    epochs: LeaderEpochCache
    producer_state: ProducerState
    recovered: Recovered
    clean: bool
    """True when everything was as a clean stop left it."""
    is_new: bool = False
    """True when the folder was empty."""


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
    before_cut: BeforeCut = cut_at_once,
) -> LoadedLog:
    """Open what is in a partition's folder, or begin it at `log_start_offset`. Raises OSError, and what `before_cut`
    raises."""
    names = tidy(directory, config, disk=disk, now_ms=now_ms, clean=clean)
    producer_state.find_snapshots(names)
    opened = (_open(directory, name, config, disk, now_ms) for name in names if name.endswith(LOG))
    segments = [segment for segment in opened if segment is not None]
    if not segments:
        return _begin(directory, names, config, producer_state, disk, now_ms, log_start_offset)
    producer_state.remove_stray_snapshots([segment.base_offset for segment in segments])
    loader = _Loader(directory, segments, producer_state, disk, now_ms, log_start_offset, before_cut)
    loader.rebuild_indexes(names, len(segments) if clean else len(loader.below(recovery_point)))
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
) -> LoadedLog:
    """Returns a new log, in a folder of files with these names."""
    epochs = _load_epochs(directory, disk) if names else LeaderEpochCache(directory, disk=disk)
    epochs.clear()
    segment = Segment.create(directory, offset, config, disk=disk, now_ms=now_ms)
    producer_state.truncate_fully(offset)
    nothing = Recovered(0, 0, None, ())
    segments = Segments(directory, [segment], disk=disk)
    return LoadedLog(segments, offset, offset, offset, epochs, producer_state, nothing, False, is_new=not names)


def _load_epochs(directory: str, disk: Disk) -> LeaderEpochCache:
    """Returns the leader epochs, empty if the file is damaged: those of the batches that are recovered come back."""
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
        before_cut: BeforeCut,
    ) -> None:
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
        self.in_tail = False
        """True while the segment that is recovered lies behind the recovery point."""

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
                self._recover(segment)

    def _has_indexes(self, segment: Segment, names: frozenset[str]) -> bool:
        if not {segment_file(segment.base_offset, extension) for extension in (INDEX, TIME_INDEX)} <= names:
            return False
        try:
            if segment_file(segment.base_offset, TXN_INDEX) in names:
                segment.txn_index.sanity_check()
            if segment is self.segments.active:
                segment.index.sanity_check()
                segment.time_index.sanity_check()
        except CorruptIndex:
            return False
        return True

    def recover(self, recovery_point: int) -> None:
        """Check the segments from the recovery point on, up to the first bad batch.

        A segment that ends too early for the next one has lost its end with the power, though that end was at a batch;
        but compaction leaves such ends too, and inside of which it leaves gaps.
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

    def _recover(self, segment: Segment) -> Scan:
        """Check one segment and rebuild its indexes; what comes after a bad batch goes."""
        rebuild_producers(self.producer_state, self.segments, self.log_start_offset, segment.base_offset, self.now_ms)
        scanned = scan(segment, self.producer_state, self.epochs)
        valid_bytes, next_offset, problem, _ = scanned
        self.scanned += 1
        self.bytes_scanned += valid_bytes
        if problem is not None:
            self._cut(segment, valid_bytes, next_offset, problem)
        self.producer_state.end_offset = self.segments.end_of(segment, next_offset)
        self.producer_state.take_snapshot(sync=False)
        segment.txn_index.flush()
        if segment is not self.segments.active:
            self._finish_indexes(segment)
        return scanned

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
        self.cut = Cut(segment.path, valid_bytes, next_offset, segment.size_bytes - valid_bytes, len(later), problem)
        self.before_cut(self.cut)
        cut_in_place(segment, valid_bytes, self.disk)
        if later:
            self._drop(later)

    def _drop(self, dropped: list[Segment]) -> None:
        """Take segments out, with their snapshots. Nobody reads them yet: they can go at once."""
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
        if log_end_offset < self.log_start_offset and clean:  # a damaged checkpoint: nothing was lost in a clean stop
            tell("log start offset is beyond the log's end", self.directory, offset=self.log_start_offset)
            self.log_start_offset = self.segments.first.base_offset
        if log_end_offset < self.log_start_offset:
            self._start_over(config)
            log_end_offset, clean = self.log_start_offset, False
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
        recovered = Recovered(self.scanned, self.bytes_scanned, self.cut, tuple(self.rebuilt))
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
            return active.read_next_offset()
        except KafkaError:
            self.rebuilt.append(active.path)
            self._recover(active)
            return active.read_next_offset()

    def _start_over(self, config: LogConfig) -> None:
        """Begins a new log where all segments end before the log's start: someone took newer ones away, and these are
        of no use."""
        old = list(self.segments)
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


def rebuild_producers(
    state: ProducerState,
    segments: Segments,
    log_start_offset: int,
    log_end_offset: int,
    now_ms: int,
    *,
    clean: bool = False,
) -> None:
    """Bring the producers up to date with a log that ends at this offset: from the newest snapshot, then by replay.

    A log that was stopped cleanly and has no snapshot was written before there were any: it has no producers.
    """
    if clean and state.latest_snapshot_offset is None:
        for offset in [*segments.base_offsets[-2:], log_end_offset]:
            state.end_offset = offset
            state.take_snapshot()
        return
    empty = state.is_empty and state.end_offset >= log_end_offset
    state.truncate_and_reload(log_start_offset, log_end_offset, now_ms)
    if log_end_offset > state.end_offset and not empty:
        for segment in segments.since(state.end_offset):
            if segment.base_offset < log_end_offset:
                state.end_offset = max(segment.base_offset, state.end_offset, log_start_offset)
                if segment.base_offset in segments.base_offsets[-2:]:
                    state.take_snapshot(sync=False)
                state.replay(_producing(segment, state.end_offset, log_end_offset))
    state.end_offset = log_end_offset
    state.take_snapshot(sync=False)


def _producing(segment: Segment, start_offset: int, end_offset: int) -> Iterator[ProducerBatch]:
    """Yields the batches with producers in a range of a segment."""
    place = segment.locate(start_offset)
    if place is None:
        return
    for position, header in segment.batches(place.position):
        if header.base_offset >= end_offset:
            return
        if header.producer_id >= 0:
            marker = None
            if header.attributes & CONTROL:
                marker = marker_in(segment.view(position, position + header.size_bytes), 0, header)
            yield ProducerBatch(header, header.base_offset, marker)
