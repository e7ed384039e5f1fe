"""Tests the frame around metadata records; their bodies are compared with Kafka's own classes in the interop tests."""

from __future__ import annotations

import pytest

from protocol.errors import ProtocolError
from protocol.metadata_records import RECORDS, decode_record, encode_record, record_class
from protocol.metadata_records.settings import FeatureLevelRecord
from protocol.metadata_records.topics import TopicRecord
from protocol.schema import identity
from tests.protocol.messages.samples import samples, versions_of

TOPIC_ID = bytes(range(16))


def test_every_record_type_has_its_class() -> None:
    assert {identity(record_class(record_type)).key for record_type in RECORDS} == set(RECORDS)


@pytest.mark.parametrize("record_type", RECORDS)
def test_every_record_comes_back_from_its_frame(record_type: int) -> None:
    cls = record_class(record_type)
    for version in versions_of(cls):
        for value in samples(cls, version):
            assert decode_record(memoryview(encode_record(value, version))) == value


def test_a_record_is_framed_by_frame_version_type_and_version() -> None:
    assert encode_record(TopicRecord(name="t", topic_id=TOPIC_ID), 0) == b"\x01\x02\x00\x02t" + TOPIC_ID + b"\x00"
    assert encode_record(FeatureLevelRecord(name="f", feature_level=3), 0) == b"\x01\x0c\x00\x02f\x00\x03\x00"


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ("", "no whole frame"),
        ("01 02", "no whole frame"),
        ("02 02 00", "frame version 2, not 1"),
        ("01 06 00", "6 is not a type of metadata record"),
        ("01 02 05", "TopicRecord has versions 0-0, not 5"),
        ("01 02 00 02", "name of 1 does not fit"),
        ("01 14 00 00 ff", "1 bytes follow a NoOpRecord"),
        ("01 ffffffffff", "longer than 32 bits"),
    ],
)
def test_a_frame_that_is_none_is_refused(frame: str, words: str) -> None:
    with pytest.raises(ProtocolError, match="(?i)" + words):
        decode_record(bytes.fromhex(frame))
