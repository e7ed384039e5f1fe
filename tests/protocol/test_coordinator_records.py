"""Tests the prefixes of coordinator records; their bodies are compared with Kafka's own classes in the interop
tests."""

from __future__ import annotations

import pytest

from protocol.coordinator_records import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    Decoded,
    decode_record,
    encode_key,
    encode_value,
    record_classes,
)
from protocol.coordinator_records.offsets import OffsetCommitKey, OffsetCommitValue
from protocol.coordinator_records.transaction import TransactionLogKey
from protocol.errors import ProtocolError
from protocol.schema import identity
from tests.protocol.messages.samples import samples, versions_of

TABLES = {"offsets": CONSUMER_OFFSETS, "transactions": TRANSACTION_STATE, "share": SHARE_GROUP_STATE}
KEY = OffsetCommitKey(group="g", topic="t", partition=1)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_record_type_has_its_key_and_value_class(table: dict[int, str]) -> None:
    for record_type, path in table.items():
        assert [identity(cls).key for cls in record_classes(path)] == [record_type, record_type]


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_record_comes_back(table: dict[int, str]) -> None:
    for path in table.values():
        key_class, value_class = record_classes(path)
        for version in versions_of(value_class):
            for key, value in zip(samples(key_class, 0), samples(value_class, version), strict=True):
                decoded = decode_record(table, encode_key(key), memoryview(encode_value(value, version)))
                assert decoded == Decoded(key, value)


def test_a_key_begins_with_its_type_and_a_value_with_its_version() -> None:
    assert encode_key(KEY) == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x01"
    value = OffsetCommitValue(offset=2, leader_epoch=3, metadata="", commit_timestamp=4)
    assert encode_value(value, 3).hex() == "0003" + "0000000000000002" + "00000003" + "0000" + "0000000000000004"


def test_a_record_without_a_value_deletes_its_key() -> None:
    assert decode_record(CONSUMER_OFFSETS, encode_key(KEY), None) == Decoded(KEY, None)


def test_a_type_of_a_later_kafka_is_no_record_to_us() -> None:
    assert decode_record(TRANSACTION_STATE, b"\x00\x09whatever", b"") is None


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (b"\x00", None, "too few"),
        (b"\x00\x00", None, "TransactionLogKey v0"),
        (encode_key(TransactionLogKey(transactional_id="t")), b"\x00", "too few"),
        (encode_key(TransactionLogKey(transactional_id="t")), b"\x00\x02", "has versions 0-1, not 2"),
        (encode_key(TransactionLogKey(transactional_id="t")), b"\x00\x01\x00", "TransactionLogValue v1"),
    ],
)
def test_bytes_that_are_no_record_are_refused(key: bytes, value: bytes | None, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        decode_record(TRANSACTION_STATE, key, value)
