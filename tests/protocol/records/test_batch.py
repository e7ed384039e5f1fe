"""Tests the header of a v2 batch: reading, checking, and stamping in place."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import (
    HEADER_SIZE,
    MAX_SEQUENCE,
    NO_SEQUENCE,
    BatchHeader,
    TimestampType,
    check_crc,
    iter_batches,
    magic_at,
    read_header,
    seal,
    set_max_timestamp,
    stamp,
    validate,
    validate_from_client,
)
from protocol.records.building import assemble, build
from protocol.records.compression import Compression
from protocol.records.record import Record, read_records


def three(**kwargs: int) -> bytearray:
    records = [Record(0, 1000, b"a", b"1"), Record(0, 3000, b"b", None), Record(0, 2000, None, b"3")]
    return build(records, **kwargs)  # type: ignore[arg-type]


def checked(batch: bytes | bytearray, position: int = 0) -> BatchHeader:
    header = read_header(batch, position)
    validate(batch, position, header)
    return header


def code_of(check: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        check()
    return caught.value.code


def test_the_header_has_what_was_built() -> None:
    header = checked(three(base_offset=40, producer_id=9, producer_epoch=2, base_sequence=5, partition_leader_epoch=7))
    assert header.base_offset == 40
    assert header.last_offset == 42
    assert header.next_offset == 43
    assert header.records_count == 3
    assert header.base_timestamp == 1000
    assert header.max_timestamp == 3000
    assert (header.producer_id, header.producer_epoch) == (9, 2)
    assert (header.base_sequence, header.last_sequence) == (5, 7)
    assert header.partition_leader_epoch == 7
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert header.compression is Compression.NONE
    assert not header.is_transactional
    assert not header.is_control
    assert header.delete_horizon_ms is None


def test_attributes() -> None:
    records = [Record(0, 5, b"", b"")]
    header = checked(build(records, transactional=True, control=True, compression=Compression.GZIP))
    assert header.is_transactional
    assert header.is_control
    assert header.compression is Compression.GZIP
    assert checked(build(records, log_append_time_ms=77)).timestamp_type is TimestampType.LOG_APPEND_TIME


def test_sequence_numbers_wrap_to_zero() -> None:
    header = checked(three(producer_id=1, producer_epoch=0, base_sequence=MAX_SEQUENCE))
    assert header.last_sequence == 1
    assert checked(three()).last_sequence == NO_SEQUENCE


def test_a_batch_lies_anywhere_in_any_buffer() -> None:
    batch = three()
    for buffer in (b"xyz" + batch, bytearray(b"xyz" + batch), memoryview(b"xyz" + batch + b"!")):
        header = read_header(buffer, 3)
        validate(buffer, 3, header)
        assert check_crc(buffer, 3, header)
        assert len(list(read_records(buffer, 3, header))) == 3


def test_every_flipped_byte_that_the_crc_covers_is_found() -> None:
    batch = three()
    for at in range(21, len(batch)):
        batch[at] ^= 0x10
        assert code_of(lambda: checked(batch)) is ErrorCode.CORRUPT_MESSAGE
        batch[at] ^= 0x10
    checked(batch)


@pytest.mark.parametrize("length", [0, 12, 60])
def test_too_few_bytes_for_a_header(length: int) -> None:
    assert code_of(lambda: read_header(three()[:length])) is ErrorCode.CORRUPT_MESSAGE


def test_a_batch_that_is_cut() -> None:
    assert code_of(lambda: checked(three()[:-1])) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [-1, 0, 48, 2**31 - 1, -(2**31)])
def test_an_impossible_length(length: int) -> None:
    batch = three()
    struct.pack_into(">i", batch, 8, length)
    assert code_of(lambda: checked(batch)) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1, 3, 127])
def test_another_magic(magic: int) -> None:
    batch = three()
    batch[16] = magic
    assert magic_at(batch) == magic
    assert code_of(lambda: checked(batch)) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist(codec: int) -> None:
    batch = assemble(read_header(three()), b"")
    batch[22] |= codec
    seal(batch, 0, len(batch) - 12)
    assert code_of(lambda: checked(batch)) is ErrorCode.INVALID_RECORD
    assert code_of(lambda: read_header(batch).compression) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(("count", "last_offset_delta"), [(4, 2), (-1, 2), (1, -1), (2**31 - 1, 0)])
def test_more_records_than_offsets(count: int, last_offset_delta: int) -> None:
    header = read_header(three())._replace(records_count=count, last_offset_delta=last_offset_delta)
    assert code_of(lambda: checked(assemble(header, b""))) is ErrorCode.INVALID_RECORD


def test_fewer_records_than_offsets_are_left_by_compaction_but_not_sent_by_clients() -> None:
    header = read_header(three())._replace(records_count=1)
    assert checked(assemble(header, b"")).records_count == 1
    assert code_of(lambda: validate_from_client(header)) is ErrorCode.INVALID_RECORD


def test_an_empty_batch_is_sound_but_not_from_a_client() -> None:
    header = read_header(three())._replace(records_count=0)
    checked(assemble(header, b""))
    assert code_of(lambda: validate_from_client(header)) is ErrorCode.INVALID_RECORD


def test_clients_write_no_control_batches() -> None:
    control = checked(build([Record()], control=True))
    assert code_of(lambda: validate_from_client(control)) is ErrorCode.INVALID_RECORD


def test_idempotent_producers_number_their_records() -> None:
    validate_from_client(checked(three(producer_id=0, producer_epoch=0, base_sequence=0)))
    validate_from_client(checked(three()))
    unnumbered = checked(three(producer_id=0, producer_epoch=0))
    assert code_of(lambda: validate_from_client(unnumbered)) is ErrorCode.INVALID_RECORD


def test_a_stamp_leaves_the_crc_alone() -> None:
    batch = three()
    before = read_header(batch)
    stamp(batch, 0, 2**40, 12)
    header = checked(batch)
    assert header == before._replace(base_offset=2**40, partition_leader_epoch=12)


def test_log_append_time_is_stamped_over_all_records() -> None:
    batch = bytearray(b"--") + three(base_offset=6)
    set_max_timestamp(batch, 2, TimestampType.LOG_APPEND_TIME, 123456)
    header = checked(batch, 2)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.max_timestamp == 123456
    assert {record.timestamp for record in read_records(batch, 2, header)} == {123456}


def test_a_timestamp_that_is_right_already_costs_nothing() -> None:
    batch = three()
    batch[17:21] = b"none"
    set_max_timestamp(batch, 0, TimestampType.CREATE_TIME, 3000)
    assert batch[17:21] == b"none"
    set_max_timestamp(batch, 0, TimestampType.CREATE_TIME, 3001)
    assert checked(batch).max_timestamp == 3001


def test_iterating_gives_whole_batches_only() -> None:
    first, second = three(base_offset=0), three(base_offset=3, compression=Compression.ZSTD)
    log = first + second
    positions = [(0, 0), (len(first), 3)]
    assert [(position, header.base_offset) for position, header in iter_batches(log)] == positions
    assert [(position, header.base_offset) for position, header in iter_batches(log + first[:-1])] == positions
    assert [position for position, _ in iter_batches(log, len(first))] == [len(first)]
    assert [position for position, _ in iter_batches(log, 0, len(log) - 1)] == [0]
    assert list(iter_batches(b"")) == []


def test_iterating_stops_at_what_is_no_batch() -> None:
    log = three() + bytes(HEADER_SIZE)
    assert code_of(lambda: list(iter_batches(log))) is ErrorCode.CORRUPT_MESSAGE
