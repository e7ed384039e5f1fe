"""Logs for tests: created, written to and read back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import NO_PRODUCER_ID, BatchHeader, iter_batches
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.control import ControlType, EndTxnMarker, end_txn_batch
from protocol.records.record import Record, read_records
from protocol.types import TopicPartition
from storage.config import LogConfig
from storage.disk import Disk, OsDisk
from storage.log import Appended, Log
from storage.producers.entry import Origin

DISK = OsDisk()
TP = TopicPartition("orders", 0)
NOW_MS = 1_700_000_000_000
PID = 4000


def config(**values: object) -> LogConfig:
    return LogConfig(**{"index_interval_bytes": 100, **values})


def open_log(
    directory: Path,
    topic_config: LogConfig | None = None,
    *,
    disk: Disk = DISK,
    now_ms: int = NOW_MS,
    clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
) -> Log:
    return Log.open(
        str(directory),
        TP,
        topic_config or config(),
        disk=disk,
        now_ms=now_ms,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
    )


def records(*values: str, timestamp: int = NOW_MS, key: str | None = "key") -> list[Record]:
    return [Record(0, timestamp, None if key is None else key.encode(), value.encode()) for value in values]


def batch(
    *values: str,
    timestamp: int = NOW_MS,
    key: str | None = "key",
    compression: Compression = Compression.NONE,
    pid: int = NO_PRODUCER_ID,
    epoch: int = 0,
    sequence: int = 0,
    transactional: bool = False,
) -> memoryview:
    """Returns a batch with these values."""
    idempotent = pid != NO_PRODUCER_ID
    return memoryview(
        build(
            records(*values, timestamp=timestamp, key=key),
            compression=compression,
            producer_id=pid,
            producer_epoch=epoch if idempotent else -1,
            base_sequence=sequence if idempotent else -1,
            transactional=transactional,
        )
    )


def marker(*, commit: bool, pid: int = PID, epoch: int = 0, coordinator_epoch: int = 1) -> memoryview:
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return memoryview(end_txn_batch(EndTxnMarker(kind, coordinator_epoch), pid, epoch, NOW_MS))


def append(
    log: Log, data: memoryview, *, now_ms: int = NOW_MS, leader_epoch: int = 0, origin: Origin = Origin.CLIENT
) -> Appended:
    """Appends as a broker without followers does: the high watermark advances."""
    appended = log.append(data, leader_epoch=leader_epoch, now_ms=now_ms, origin=origin)
    log.update_high_watermark(log.log_end_offset)
    return appended


def write(log: Log, *values: str, timestamp: int = NOW_MS, now_ms: int = NOW_MS) -> Appended:
    return append(log, batch(*values, timestamp=timestamp), now_ms=now_ms)


def end_transaction(log: Log, *, commit: bool, pid: int = PID, epoch: int = 0, leader_epoch: int = 0) -> Appended:
    end = marker(commit=commit, pid=pid, epoch=epoch)
    return append(log, end, origin=Origin.COORDINATOR, leader_epoch=leader_epoch)


def headers(log: Log) -> list[BatchHeader]:
    """Returns every batch in the log, from its start."""
    return [header for segment in log.segments for _, header in segment.batches()]


def read_all(log: Log, offset: int | None = None, max_bytes: int = 1000, max_offset: int | None = None) -> list[Record]:
    """Returns the records from an offset on, as a consumer gets them by repeated fetches."""
    at = log.log_start_offset if offset is None else offset
    end = log.log_end_offset if max_offset is None else max_offset
    records: list[Record] = []
    while at < end:
        fresh = [record for record in fetch(log, at, max_bytes, max_offset) if record.offset >= at]
        if not fresh:
            break
        records += fresh
        at = fresh[-1].offset + 1
    return records


def fetch(log: Log, offset: int, max_bytes: int = 1000, max_offset: int | None = None) -> Iterator[Record]:
    """Yields the records of the whole batches of one read."""
    for part in log.read(offset, max_bytes, max_offset=max_offset).parts:
        for position, header in iter_batches(part):
            yield from read_records(part, position, header)


def values(records: list[Record]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


def base_offsets(log: Log) -> list[int]:
    return list(log.segments.base_offsets)


def error_of(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.raises(KafkaError, check=lambda error: error.code is code)
