"""Cleans one log: maps the keys of its dirty part, then rewrites its segments with the records that stay.

Uses only files of sealed segments, so that it can run in another process. The log swaps in each finished `.cleaned`
segment (swap.py). Kafka class Cleaner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from protocol.records.batch import CONTROL, MAGIC_V2, BatchHeader
from protocol.records.message_set import read_messages
from protocol.records.record import iter_keys
from protocol.types import Buffer
from storage.cleaner.compaction import Filter, Stats, Transactions
from storage.cleaner.job import Cleaned, CleanedSegment, CleaningJob, DirtySegment
from storage.cleaner.offset_map import BUCKET_ENTRIES, ENTRY_BYTES, OffsetMap
from storage.config import LogConfig
from storage.disk import Disk
from storage.markers import marker_in
from storage.names import CLEANED
from storage.segment.batches import check, header_at, leads_to_batch
from storage.segment.index import MAX_RELATIVE_OFFSET
from storage.segment.segment import Segment

WRITE_BYTES = 256 * 1024
"""Bytes that are collected before a write: the size of Kafka's write buffer, half of log.cleaner.io.buffer.size."""

Throttle = Callable[[int], None]
"""Counts bytes that were read or written, and waits until more are allowed."""


def clean(job: CleaningJob, *, disk: Disk, throttle: Throttle) -> Iterator[CleanedSegment | Cleaned]:
    """Cleans the log. Yields each new segment once it is on the device, then the summary.

    Raises OSError, and KafkaError: CORRUPT_MESSAGE for a damaged log, INVALID_RECORD for a record that is too large.
    """
    return _Cleaner(job, disk, throttle).run()


class _Cleaner:
    def __init__(self, job: CleaningJob, disk: Disk, throttle: Throttle) -> None:
        self.job = job
        self.disk = disk
        self.throttle = throttle
        self.stats = Stats()
        self.config = LogConfig(
            segment_bytes=job.segment_bytes,
            segment_index_bytes=job.segment_index_bytes,
            index_interval_bytes=job.index_interval_bytes,
        )
        self.segments = {source.base_offset: self._open(source) for source in job.segments}

    def _open(self, source: DirtySegment) -> Segment:
        return Segment(
            self.job.directory,
            source.base_offset,
            self.config,
            disk=self.disk,
            now_ms=self.job.now_ms,
            size_bytes=source.size_bytes,
            sealed=True,
        )

    def run(self) -> Iterator[CleanedSegment | Cleaned]:
        job, stats = self.job, self.stats
        offsets = self._map()
        end_offset = offsets.latest_offset + 1
        stats.map_full = offsets.size / offsets.slots
        transactions = Transactions(job.aborted)
        rules = Filter(
            offsets,
            transactions,
            job.producers,
            stats,
            end_offset=job.end_offset,
            now_ms=job.now_ms,
            delete_retention_ms=job.delete_retention_ms,
            largest_record=job.largest_record,
        )
        for group in self._groups([source for source in job.segments if source.base_offset < end_offset]):
            yield self._write(group, rules)
        yield Cleaned(
            end_offset,
            stats.map_bytes_read + stats.bytes_read,
            stats.bytes_written,
            stats.records_kept,
            stats.invalid_records,
            stats.map_full,
        )

    # The keys of the dirty part

    def _map(self) -> OffsetMap:
        """Returns the latest offset of each key from the first dirty offset on, until the map is full."""
        job = self.job
        needed = int((job.end_offset - job.first_dirty_offset) / job.load_factor) + BUCKET_ENTRIES
        offsets = OffsetMap(min(job.map_bytes, needed * ENTRY_BYTES))
        room = int(offsets.slots * job.load_factor)
        transactions = Transactions(entry for entry in job.aborted if entry.last_offset >= job.first_dirty_offset)
        ends = [source.base_offset for source in job.segments[1:]] + [job.end_offset]
        offsets.latest_offset = job.first_dirty_offset - 1
        for source, end in zip(job.segments, ends, strict=True):
            if end > job.first_dirty_offset:
                if not self._map_segment(self.segments[source.base_offset], offsets, transactions, room):
                    break
                offsets.latest_offset = end - 1
        return offsets

    def _map_segment(self, segment: Segment, offsets: OffsetMap, transactions: Transactions, room: int) -> bool:
        """Adds a segment's keys to the map; False if the map is full before the segment's end."""
        start = self.job.first_dirty_offset
        for view, header in self._read(segment, self._position(segment)):
            self.stats.map_bytes_read += header.size_bytes
            if header.attributes & CONTROL and header.magic >= MAGIC_V2:
                transactions.ends(header, marker_in(view, 0, header) if header.records_count else None)
            elif not transactions.is_aborted(header):
                for key, offset in _keys(view, header, self.job.largest_record):
                    if offset >= start:
                        if offsets.size >= room:
                            return False
                        offsets.put(key, offset)
            if header.last_offset >= start:
                offsets.latest_offset = header.last_offset
        return True

    def _position(self, segment: Segment) -> int:
        """Returns the position from which to search the first dirty offset. Ignores a damaged index, which the log will
        rebuild."""
        entry = segment.index.lookup(self.job.first_dirty_offset)
        if entry.position and leads_to_batch(segment.view, segment.base_offset, entry, segment.size_bytes):
            return entry.position
        return 0

    def _read(self, segment: Segment, position: int = 0) -> Iterator[tuple[memoryview, BatchHeader]]:
        end = segment.size_bytes
        for at, header in segment.batches(position):
            self.throttle(header.size_bytes)
            position = at + header.size_bytes
            yield segment.view(at, position), header
        if position != end:  # an incomplete batch in the middle of a log hides all later batches
            view = segment.view(position, end)
            check(view, 0, header_at(view, 0))

    # Writing

    def _groups(self, sources: Sequence[DirtySegment]) -> Iterator[tuple[DirtySegment, ...]]:
        """Yields groups of neighbours that fit into one segment together, so that small segments are merged."""
        group: list[DirtySegment] = []
        sizes = (0, 0, 0)
        for n, source in enumerate(sources):
            segment = self.segments[source.base_offset]
            more = (source.size_bytes, segment.index.size_bytes, segment.time_index.size_bytes)
            total = (sizes[0] + more[0], sizes[1] + more[1], sizes[2] + more[2])
            last = (sources[n + 1].base_offset if n + 1 < len(sources) else self.job.end_offset) - 1
            if group and not self._fits(total, source, last - group[0].base_offset):
                yield tuple(group)
                group, total = [], more
            group.append(source)
            sizes = total
        if group:
            yield tuple(group)

    def _fits(self, total: tuple[int, int, int], source: DirtySegment, offsets: int) -> bool:
        job = self.job
        spans_too_much = source.size_bytes and offsets > MAX_RELATIVE_OFFSET
        return total[0] <= job.segment_bytes and max(total[1:]) <= job.segment_index_bytes and not spans_too_much

    def _write(self, group: Sequence[DirtySegment], rules: Filter) -> CleanedSegment:
        job = self.job
        cleaned = Segment.create(
            job.directory, group[0].base_offset, self.config, disk=self.disk, now_ms=job.now_ms, suffix=CLEANED
        )
        rules.transactions.index = cleaned.txn_index
        writer = _Writer(cleaned, self.throttle)
        try:
            for source in group:
                rules.retain_legacy_deletes = source.modified_ms > self._legacy_delete_horizon_ms()
                for view, header in self._read(self.segments[source.base_offset]):
                    self.stats.bytes_read += header.size_bytes
                    retained = rules.keep(view, header)
                    if retained is not None:
                        writer.add(retained, header if retained is view else header_at(memoryview(retained), 0))
            writer.flush()
            self._finish(cleaned, group[-1].modified_ms)
        except BaseException:
            _discard(cleaned)
            raise
        self.stats.bytes_written += cleaned.size_bytes
        return CleanedSegment(cleaned.base_offset, cleaned.size_bytes, tuple(group))

    def _finish(self, cleaned: Segment, modified_ms: int) -> None:
        """Flushes the segment to the device. Its files get the modification time of the newest source segment."""
        cleaned.seal()
        cleaned.flush()
        for path in (cleaned.path, cleaned.index.path, cleaned.time_index.path):
            self.disk.set_modified(path, modified_ms)
        cleaned.release()

    def _legacy_delete_horizon_ms(self) -> int:
        """Returns the modification time up to which segments lose their v0 and v1 tombstones, which have no own
        time."""
        clean = [source for source in self.job.segments if source.base_offset < self.job.first_dirty_offset]
        return clean[-1].modified_ms - self.job.delete_retention_ms if clean else 0


class _Writer:
    """Collects batches and appends them to a segment, several in a write."""

    def __init__(self, segment: Segment, throttle: Throttle) -> None:
        self._segment = segment
        self._throttle = throttle
        self._buffers: list[Buffer] = []
        self._headers: list[BatchHeader] = []
        self._size_bytes = 0

    def add(self, batch: Buffer, header: BatchHeader) -> None:
        self._buffers.append(batch)
        self._headers.append(header)
        self._size_bytes += len(batch)
        if self._size_bytes >= WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._buffers:
            self._segment.append(self._buffers, self._headers, self._size_bytes)
            self._throttle(self._size_bytes)
        self._buffers, self._headers, self._size_bytes = [], [], 0


def _keys(view: memoryview, header: BatchHeader, largest: int) -> Iterable[tuple[bytes, int]]:
    """Returns key and offset of each record that has a key. Raises INVALID_RECORD for a compressed record of more than
    `largest` bytes."""
    check(view, 0, header)
    if header.magic >= MAGIC_V2:
        raw = iter_keys(view, 0, header, largest=largest)
        return [(record.key, record.offset) for record in raw if record.key is not None]
    records = read_messages(view, largest=largest)
    return [(record.key, record.offset) for record in records if record.key is not None]


def _discard(cleaned: Segment) -> None:
    """Deletes an unfinished segment. If the disk fails, the next start deletes it."""
    try:
        cleaned.delete()
    except OSError:
        cleaned.release()
