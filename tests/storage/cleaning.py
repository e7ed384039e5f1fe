"""Compacted logs: written by key, cleaned, and read back as key → value."""

from __future__ import annotations

from protocol.records.batch import NO_PRODUCER_ID
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record
from storage.cleaner.choice import dirty_part, job_of
from storage.cleaner.cleaner import clean
from storage.cleaner.job import Cleaned, CleanedSegment
from storage.cleaner.swap import swap_in
from storage.config import LogConfig
from storage.log import Log
from tests.storage.writing import DISK, NOW_MS, append, config, read_all

MAP_BYTES = 1 << 20


def compacted(**values: object) -> LogConfig:
    defaults = {"cleanup_policy": ("compact",), "segment_bytes": 400, "min_cleanable_dirty_ratio": 0.0}
    return config(**{**defaults, **values})


def put(
    log: Log,
    *pairs: tuple[str, str | None],
    timestamp: int = NOW_MS,
    now_ms: int = NOW_MS,
    compression: Compression = Compression.NONE,
    pid: int = NO_PRODUCER_ID,
    epoch: int = 0,
    sequence: int = 0,
    transactional: bool = False,
) -> int:
    """Appends a batch of keys and values (None is a tombstone); returns its first offset."""
    idempotent = pid != NO_PRODUCER_ID
    records = [Record(0, timestamp, key.encode(), None if value is None else value.encode()) for key, value in pairs]
    data = build(
        records,
        compression=compression,
        producer_id=pid,
        producer_epoch=epoch if idempotent else -1,
        base_sequence=sequence if idempotent else -1,
        transactional=transactional,
    )
    return append(log, memoryview(data), now_ms=now_ms).base_offset


def run_cleaner(
    log: Log, now_ms: int = NOW_MS, *, map_bytes: int = MAP_BYTES, load_factor: float = 0.9
) -> Cleaned | None:
    """Cleans the log if any of it can be cleaned, as the broker's cleaner does."""
    dirty = dirty_part(log, now_ms)
    if dirty is None or not dirty.is_due:
        return None
    job = job_of(dirty, now_ms, map_bytes=map_bytes, load_factor=load_factor)
    log.flush(now_ms)
    for result in clean(job, disk=DISK, throttle=lambda _: None):
        if isinstance(result, CleanedSegment):
            assert swap_in(log, result, disk=DISK, now_ms=now_ms)
        else:
            log.cleaned_to = result.end_offset
            return result
    raise AssertionError("a cleaning ends with its summary")


def latest(log: Log) -> dict[str, str | None]:
    """Returns the latest value of each key that a reader sees from the start on."""
    values: dict[str, str | None] = {}
    for record in read_all(log):
        key = (record.key or b"").decode()
        if record.value is None:
            values.pop(key, None)
        else:
            values[key] = record.value.decode()
    return values


def pairs(log: Log) -> list[tuple[int, str, str | None]]:
    """Returns (offset, key, value) of every record."""
    return [
        (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
        for record in read_all(log)
    ]
