"""Tests records and messages that are read while they are inflated, one whole item at a time."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from protocol.errors import KafkaError
from protocol.records.batch import read_header
from protocol.records.building import build
from protocol.records.compression import PIECE_BYTES, Compression, TooLarge
from protocol.records.legacy import ConversionBudget, down_convert, up_convert
from protocol.records.message_set import encode_message_set, message_end, read_messages
from protocol.records.record import Record, read_records
from protocol.records.whole import iter_whole_times, read_whole, record_end, whole

MIB = 1 << 20
RECORDS = [
    Record(n, 1_000 + n, b"%d" % n, bytes([n & 0x7F]) * size, (("h", b"x"),))
    for n, size in enumerate([0, 10, PIECE_BYTES - 30, 3 * PIECE_BYTES, 1] * 4)
]
LEGACY_CODECS = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)


@pytest.mark.parametrize("codec", list(Compression))
def test_they_are_what_is_read_at_once(codec: Compression) -> None:
    batch = build(RECORDS, compression=codec)
    header = read_header(batch)
    assert list(read_whole(batch, 0, header)) == list(read_records(batch, 0, header))
    assert list(iter_whole_times(batch, 0, header)) == [(record.offset, record.timestamp) for record in RECORDS]


@pytest.mark.parametrize("count", [-1, 0, 19, 21])
def test_a_count_that_is_not_theirs_is_an_error(count: int) -> None:
    batch = build(RECORDS, compression=Compression.LZ4)
    with pytest.raises(KafkaError):
        list(read_whole(batch, 0, read_header(batch)._replace(records_count=count)))


@pytest.mark.parametrize("end_of", [record_end, message_end])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_pieces_may_end_anywhere(size: int, end_of: Callable[[bytes, int], int]) -> None:
    small = [record._replace(value=b"v" * (n * 7)) for n, record in enumerate(RECORDS)]
    data = bytes(build(small)[61:] if end_of is record_end else encode_message_set(small, 1))
    parts = list(whole((data[at : at + size] for at in range(0, len(data), size)), end_of, len(data)))
    assert b"".join(part for part, _ in parts) == data
    assert sum(count for _, count in parts) == len(small)
    with pytest.raises(TooLarge):
        list(whole(iter((data,)), end_of, len(data) - 1))


def test_what_is_cut_comes_last() -> None:
    data = bytes(build(RECORDS[:2])[61:])
    assert [count for _, count in whole(iter((data[:-1],)), record_end, MIB)] == [1, 1]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", LEGACY_CODECS)
def test_conversions_cross_the_ends_of_pieces(magic: int, codec: Compression) -> None:
    plain = [record._replace(headers=(), timestamp=record.timestamp if magic else -1) for record in RECORDS]
    down = down_convert(build(RECORDS, compression=codec), magic, 0)
    assert list(read_messages(down)) == plain
    up = up_convert(down)
    assert list(read_records(up, 0, read_header(up))) == plain


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MANY = [Record(n, 5, None, bytes(50)) for n in range(60_000)]


def test_a_conversion_holds_pieces_and_what_it_makes() -> None:
    batch = build(MANY, compression=Compression.GZIP)
    down = down_convert(batch, 1, 0)
    held_bytes = len(batch) + len(down) + 10 * PIECE_BYTES
    assert peak_bytes(lambda: down_convert(batch, 1, 0)) < held_bytes < len(encode_message_set(MANY, 1))
    assert peak_bytes(lambda: up_convert(down)) < held_bytes


def test_a_fetch_converts_within_its_budget() -> None:
    first, second = build(MANY[:1000], compression=Compression.GZIP), build(MANY[:2000], base_offset=1000)
    size = len(encode_message_set(MANY[:1000], 1))
    budget = ConversionBudget(2 * size)
    converted = list(read_messages(down_convert(first + second, 1, 0, budget)))
    assert ([record.offset for record in converted], budget.left) == ([*range(1000)], size)
    with pytest.raises(TooLarge):
        down_convert(second, 1, 1000, budget)
    assert budget.left == size
