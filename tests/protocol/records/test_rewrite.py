"""Tests batches after compaction."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.records.batch import BatchHeader, read_header, validate
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record, iter_keys, read_records
from protocol.records.rewrite import with_records, without_records

RECORDS = [
    Record(50, 100, b"a", b"1"),
    Record(51, 300, b"b", b"2" * 500, (("h", b"\xff"),)),
    Record(52, 200, b"c", None),
]


def original(**kwargs: Any) -> tuple[bytearray, BatchHeader]:
    batch = build(
        RECORDS, base_offset=50, producer_id=4, producer_epoch=1, base_sequence=8, partition_leader_epoch=3, **kwargs
    )
    return batch, read_header(batch)


def read(batch: bytearray) -> tuple[BatchHeader, list[Record]]:
    header = read_header(batch)
    validate(batch, 0, header)
    return header, list(read_records(batch, 0, header))


@pytest.mark.parametrize("codec", Compression, ids=lambda codec: codec.name)
def test_records_go_and_the_rest_stays(codec: Compression) -> None:
    batch, header = original(compression=codec)
    remaining = [raw for raw in iter_keys(batch, 0, header) if raw.key != b"b"]
    rewritten, records = read(with_records(header, remaining))
    assert records == [RECORDS[0], RECORDS[2]]
    assert (rewritten.base_offset, rewritten.last_offset) == (50, 52)
    assert (rewritten.base_sequence, rewritten.last_sequence) == (8, 10)
    assert rewritten.max_timestamp == 200
    assert rewritten.records_count == 2
    assert rewritten.compression is codec
    assert rewritten.partition_leader_epoch == 3


def test_all_records_kept_give_the_same_batch() -> None:
    batch, header = original()
    assert with_records(header, list(iter_keys(batch, 0, header))) == batch


def test_the_first_record_s_timestamp_becomes_the_base() -> None:
    batch, header = original()
    rewritten, records = read(with_records(header, list(iter_keys(batch, 0, header))[1:]))
    assert rewritten.base_timestamp == 300
    assert records == RECORDS[1:]


def test_a_delete_horizon_is_set_once_and_stays() -> None:
    batch, header = original()
    first, records = read(with_records(header, list(iter_keys(batch, 0, header)), delete_horizon_ms=9000))
    assert first.delete_horizon_ms == 9000
    assert records == RECORDS
    again = with_records(
        first, list(iter_keys(with_records(header, list(iter_keys(batch, 0, header)), 9000), 0, first))
    )
    second, records = read(again)
    assert second.delete_horizon_ms == 9000
    assert records == RECORDS


def test_log_append_time_stays() -> None:
    batch, header = original(log_append_time_ms=77)
    rewritten, records = read(with_records(header, list(iter_keys(batch, 0, header))[:1]))
    assert rewritten.max_timestamp == 77
    assert records == [RECORDS[0]._replace(timestamp=77)]


def test_an_empty_batch_remembers_offsets_and_producer() -> None:
    _, header = original(compression=Compression.LZ4, transactional=True)
    empty, records = read(without_records(header))
    assert records == []
    assert empty.size_bytes == 61
    assert (empty.base_offset, empty.last_offset, empty.last_sequence) == (50, 52, 10)
    assert (empty.producer_id, empty.producer_epoch) == (4, 1)
    assert empty.max_timestamp == 300
    assert empty.is_transactional
    assert empty.compression is Compression.NONE
