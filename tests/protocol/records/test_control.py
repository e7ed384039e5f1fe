"""Tests control records: their types, and invalid values."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.records.batch import read_header, validate
from protocol.records.control import (
    ControlType,
    EndTxnMarker,
    decode_key,
    decode_marker,
    decode_quorum_record,
    encode_key,
    end_txn_batch,
)
from protocol.records.record import Record, read_records


@pytest.mark.parametrize("kind", ControlType)
def test_keys_come_back(kind: ControlType) -> None:
    assert decode_key(encode_key(kind)) is kind


def test_types_of_later_kafkas_are_unknown() -> None:
    unknown = Record(key=b"\0\0\0\x63", value=b"")
    assert decode_key(unknown.key) is None
    assert decode_marker(unknown) is None
    assert decode_quorum_record(unknown) is None


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_keys_that_make_no_sense(key: bytes | None) -> None:
    with pytest.raises(KafkaError) as caught:
        decode_key(key)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("value", [None, b"\0\0\0\0\0", b"\xff\xff\0\0\0\0"])
def test_markers_that_make_no_sense(value: bytes | None) -> None:
    with pytest.raises(KafkaError) as caught:
        decode_marker(Record(key=encode_key(ControlType.ABORT), value=value))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_marker_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    marker = decode_marker(Record(key=encode_key(ControlType.ABORT), value=b"\0\x01\0\0\0\x05more"))
    assert marker == EndTxnMarker(ControlType.ABORT, 5)
    assert not marker.is_commit


def test_a_quorum_record_s_value_that_makes_no_sense() -> None:
    with pytest.raises(ProtocolError):
        decode_quorum_record(Record(key=encode_key(ControlType.KRAFT_VOTERS), value=b"\0\0\x09"))


def test_a_marker_is_a_transactional_control_batch_without_a_sequence() -> None:
    batch = end_txn_batch(EndTxnMarker(ControlType.ABORT, 8), producer_id=5, producer_epoch=1, now_ms=42)
    header = read_header(batch)
    validate(batch, 0, header)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, -1)
    (record,) = read_records(batch, 0, header)
    assert record.timestamp == 42
    assert decode_marker(record) == EndTxnMarker(ControlType.ABORT, 8)
