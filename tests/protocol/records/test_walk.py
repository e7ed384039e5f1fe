"""Tests the validation of all records: both implementations against each other, and against another project's
decoder."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.errors import CorruptRecordError
from kafka.record.memory_records import MemoryRecords

from protocol.errors import ErrorCode, InvalidRecords, KafkaError
from protocol.records.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, read_header
from protocol.records.building import build
from protocol.records.record import Record
from protocol.records.varint import encode_varint
from protocol.records.walk import MAX_LISTED_ERRORS, UNUSUAL, RecordRules, Walk, largest_timestamp
from tests.interop.conformance.poison import RECORDS, record, several

PIECE = bytes(1 << 20)
FREE = RecordRules(keys=False, unstamped=False, times=False, earliest=0, latest=0)
KEYS = RecordRules(keys=True, unstamped=False, times=False, earliest=0, latest=0)
ATTRIBUTES_READ = 0x7F
"""Attribute values that kafka-python also decodes: attributes are a byte, but kafka-python reads a varint."""
BASE_MS = 1_500_000_000_000

some_bytes = st.none() | st.binary(max_size=300)
some_records = st.lists(
    st.builds(
        Record,
        timestamp=st.integers(-1, 1 << 60),
        key=some_bytes,
        value=some_bytes,
        headers=st.lists(st.tuples(st.text(max_size=5), some_bytes), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


def walked(data: bytes, count: int, base: int, rules: RecordRules = FREE, step: int = 1 << 20) -> Walk:
    walk = Walk(count, 0, base, None, rules)
    for at in range(0, len(data), step):
        walk.feed(data[at : at + step])
    walk.end()
    return walk


def fault(data: bytes, count: int, base: int = BASE_MS, step: int = 1 << 20) -> str:
    with pytest.raises(KafkaError) as caught:
        walked(data, count, base, step=step)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    return caught.value.message or ""


SOUND = {
    "sound records", "a timestamp delta in 10 bytes", "a key length of -2", "a null key and value", "an empty key",
    "a value length of -2", "headers", "a header with a null value", "a header key that is not UTF-8",
    "a header with a value length of -5", "record attributes", "record attributes with the sign", "no timestamp",
    "an hour ahead and more", "a timestamp below -1", "a timestamp of -2^63",
}  # fmt: skip


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize("case", RECORDS)
def test_what_is_a_record_and_what_is_not(case: str, step: int) -> None:
    data, count = RECORDS[case]
    if case in SOUND:
        assert walked(data, count, BASE_MS, step=step).consecutive
    elif "delta" in case and "bytes" not in case:
        assert not walked(data, count, BASE_MS, step=step).consecutive
    else:
        assert fault(data, count, step=step)


@pytest.mark.parametrize("case", RECORDS)
def test_the_quick_look_takes_nothing_that_the_long_one_does_not(case: str) -> None:
    data, count = RECORDS[case]
    quick = largest_timestamp(data, count, BASE_MS)
    if quick != UNUSUAL:
        walk = walked(data, count, BASE_MS)
        assert (walk.max_timestamp, walk.consecutive) == (quick, True)


@given(some_records, st.integers(1, 400))
def test_sound_batches(records: list[Record], step: int) -> None:
    batch = build(records)
    header, data = read_header(batch), bytes(batch[HEADER_SIZE:])
    walk = walked(data, header.records_count, header.base_timestamp, step=step)
    assert (walk.index, walk.max_timestamp, walk.consecutive) == (len(records), header.max_timestamp, True)
    assert largest_timestamp(data, header.records_count, header.base_timestamp) == header.max_timestamp


mutations = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=3)


@settings(max_examples=400)
@given(some_records, mutations, st.integers(0, 3), st.integers(-1, 1), st.integers(1, 400))
def test_of_mutated_batches_what_passes_is_what_another_decoder_reads(
    records: list[Record], changes: list[tuple[int, int]], cut: int, more: int, step: int
) -> None:
    batch = build(records)
    header, data = read_header(batch), bytearray(batch[HEADER_SIZE : len(batch) - cut])
    for at, value in changes:
        data[at % len(data)] = value & ATTRIBUTES_READ
    count = max(1, header.records_count + more)
    quick = largest_timestamp(bytes(data), count, header.base_timestamp)
    walk = passed(bytes(data), count, header.base_timestamp, step)
    if walk is None:
        assert quick == UNUSUAL
    else:
        assert quick in (walk.max_timestamp, UNUSUAL)
        assert decoded(bytes(data), count, header.base_timestamp) == count


def passed(data: bytes, count: int, base: int, step: int) -> Walk | None:
    """Returns None if the records are rejected; any other exception fails the test."""
    try:
        return walked(data, count, base, step=step)
    except KafkaError as error:
        if error.code is not ErrorCode.INVALID_RECORD:
            raise
        return None


def decoded(data: bytes, count: int, base: int) -> int:
    """Returns the number of records that kafka-python reads."""
    from protocol.records.batch import seal

    head = read_header(build([Record()]))
    length = HEADER_SIZE - LOG_OVERHEAD + len(data)
    fields = {"batch_length": length, "records_count": count, "last_offset_delta": count - 1, "base_timestamp": base}
    batch = bytearray(HEADER.pack(*head._replace(**fields))) + data
    seal(batch, 0, length)
    theirs = MemoryRecords(bytes(batch)).next_batch()
    try:
        return len(list(theirs))
    except CorruptRecordError as error:
        if isinstance(error.__context__, UnicodeDecodeError):  # a header's key need not be text
            return count
        raise


def test_records_at_fault_are_named_once_all_are_known_to_be_records() -> None:
    data = record(0) + record(1, key=None) + record(2, key=None)
    with pytest.raises(InvalidRecords) as caught:
        walked(data, 3, BASE_MS, KEYS)
    assert [index for index, _ in caught.value.record_errors] == [1, 2]
    with pytest.raises(KafkaError) as raised:
        walked(data[:-1], 3, BASE_MS, KEYS)
    assert not isinstance(raised.value, InvalidRecords)


def test_no_more_records_are_named_than_fit_an_answer() -> None:
    count = MAX_LISTED_ERRORS + 5
    data = b"".join(record(delta, key=None, value=None) for delta in range(count))
    with pytest.raises(InvalidRecords) as caught:
        walked(data, count, BASE_MS, KEYS)
    assert len(caught.value.record_errors) == MAX_LISTED_ERRORS
    assert str(count) in (caught.value.message or "")


def test_a_value_larger_than_memory_is_passed_over_in_pieces() -> None:
    walk = Walk(1, 0, BASE_MS, None, FREE)
    walk.feed(encode_varint((1 << 31) - 1) + b"\0\0\0\1" + encode_varint((1 << 31) - 100))
    tracemalloc.start()
    for _ in range(100):
        walk.feed(PIECE)
    assert tracemalloc.get_traced_memory()[1] < 2 * len(PIECE)
    tracemalloc.stop()


def test_records_of_many_pieces() -> None:
    assert walked(several(500), 500, BASE_MS, step=13).index == 500
