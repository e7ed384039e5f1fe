"""Tests the codecs: we read the output of Kafka's clients, they read ours, and inflating is bounded."""

from __future__ import annotations

import gzip
import tracemalloc

import kafka.codec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ErrorCode, KafkaError
from protocol.records import lz4
from protocol.records.codecs import compress, decompress
from protocol.records.compression import Compression, TooLarge

MIB = 1024 * 1024
CODECS = tuple(Compression)[1:]
REAL_LIFE = b"".join(b'{"user": %d, "action": "click", "at": %d}' % (n % 97, 1700000000 + n) for n in range(20_000))
SAMPLES = (b"", b"x", bytes(range(256)), REAL_LIFE, bytes(200_000))

every_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)


def refusal(codec: Compression, data: bytes, max_size: int = MIB) -> str:
    with pytest.raises(KafkaError) as caught:
        decompress(codec, data, max_size=max_size)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    return caught.value.message


@pytest.mark.parametrize("codec", Compression, ids=lambda codec: codec.name)
@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("data", SAMPLES, ids=len)
def test_data_comes_back_from_any_buffer(codec: Compression, magic: int, data: bytes) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        compressed = compress(codec, buffer, magic=magic)
        assert decompress(codec, memoryview(compressed), max_size=len(data), magic=magic) == data


@given(st.sampled_from(Compression), st.binary(max_size=5000))
def test_any_data_comes_back(codec: Compression, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), max_size=5000) == data


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Compression.GZIP, range(-1, 10)), (Compression.LZ4, range(1, 18)), (Compression.ZSTD, range(-7, 23))],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_level_that_kafka_allows(codec: Compression, levels: range) -> None:
    data = REAL_LIFE[:5000]
    sizes = {len(compress(codec, data, level)) for level in levels}
    assert len(sizes) > 1
    assert all(decompress(codec, compress(codec, data, level), max_size=5000) == data for level in levels)


@every_codec
def test_one_byte_more_than_allowed(codec: Compression) -> None:
    data = REAL_LIFE[:100_000]
    assert decompress(codec, compress(codec, data), max_size=100_000) == data
    with pytest.raises(TooLarge, match="inflate to more than 99999 bytes"):
        decompress(codec, compress(codec, data), max_size=99_999)


@every_codec
def test_a_bomb_takes_no_more_memory_than_the_limit(codec: Compression) -> None:
    bomb = compress(codec, bytes(64 * MIB))
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            decompress(codec, bomb, max_size=MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB


@every_codec
def test_data_that_is_cut_or_has_more_after_it(codec: Compression) -> None:
    compressed = compress(codec, REAL_LIFE[:2000])
    for data in (compressed[:-1], compressed[: len(compressed) // 2], compressed[:3]):
        refusal(codec, data)
    if codec in (Compression.SNAPPY, Compression.ZSTD):
        refusal(codec, compressed + b"more")
    else:  # as by Java's readers
        assert decompress(codec, compressed + b"more", max_size=MIB) == REAL_LIFE[:2000]


@every_codec
def test_data_of_another_codec(codec: Compression) -> None:
    for other in {*CODECS, Compression.NONE} - {codec}:
        refusal(codec, compress(other, REAL_LIFE[:2000]))


def test_gzip_is_as_in_python() -> None:
    assert gzip.decompress(compress(Compression.GZIP, REAL_LIFE)) == REAL_LIFE
    assert decompress(Compression.GZIP, gzip.compress(REAL_LIFE), max_size=MIB) == REAL_LIFE


def test_gzip_members_one_after_another() -> None:
    joined = gzip.compress(b"one") + gzip.compress(b"") + gzip.compress(b"two")
    assert decompress(Compression.GZIP, joined, max_size=6) == b"onetwo"
    assert "more than 5 bytes" in refusal(Compression.GZIP, joined, 5)


def test_zstd_frames_one_after_another() -> None:
    joined = compress(Compression.ZSTD, b"one") + compress(Compression.ZSTD, b"two")
    assert decompress(Compression.ZSTD, joined, max_size=6) == b"onetwo"
    assert "more than 5 bytes" in refusal(Compression.ZSTD, joined, 5)


def test_snappy_in_xerial_s_framing_is_as_in_kafka_python() -> None:
    assert kafka.codec.snappy_decode(compress(Compression.SNAPPY, REAL_LIFE)) == REAL_LIFE
    theirs = kafka.codec.snappy_encode(REAL_LIFE, xerial_compatible=True)
    assert decompress(Compression.SNAPPY, theirs, max_size=MIB) == REAL_LIFE


def test_snappy_without_framing_is_read_too() -> None:
    raw = kafka.codec.snappy_encode(REAL_LIFE, xerial_compatible=False)
    assert decompress(Compression.SNAPPY, raw, max_size=MIB) == REAL_LIFE


def test_xerial_streams_one_after_another() -> None:
    joined = compress(Compression.SNAPPY, b"one") + compress(Compression.SNAPPY, b"two")
    assert decompress(Compression.SNAPPY, joined, max_size=6) == b"onetwo"
    assert "more than 5 bytes" in refusal(Compression.SNAPPY, joined, 5)


def test_a_snappy_block_that_claims_more_than_snappy_can_hold() -> None:
    assert "which is impossible" in refusal(Compression.SNAPPY, b"\xff\xff\xff\x07\0\0", 2**31)


@pytest.mark.parametrize("tail", [b"\0\0\0\x09ab", b"\xff\xff\xff\xffab", b"\0\0\0\0"])
def test_a_xerial_block_that_is_not_there(tail: bytes) -> None:
    refusal(Compression.SNAPPY, compress(Compression.SNAPPY, b"abc") + tail)


def test_lz4_is_as_in_kafka_python() -> None:
    assert kafka.codec.lz4_decode(compress(Compression.LZ4, REAL_LIFE)) == REAL_LIFE
    theirs = kafka.codec.lz4_encode(REAL_LIFE)
    assert decompress(Compression.LZ4, theirs, max_size=MIB) == REAL_LIFE


def test_lz4_of_magic_0_has_the_checksum_that_old_clients_expect() -> None:
    right, wrong = compress(Compression.LZ4, b"abc"), compress(Compression.LZ4, b"abc", magic=0)
    assert right[:7].hex() == "04224d18604082"
    assert wrong[:7].hex() == "04224d1860401a"
    assert right[7:] == wrong[7:]


def test_lz4_of_magic_0_is_read_with_any_header_checksum() -> None:
    for frame in (compress(Compression.LZ4, REAL_LIFE, magic=0), compress(Compression.LZ4, REAL_LIFE)):
        assert decompress(Compression.LZ4, frame, max_size=MIB, magic=0) == REAL_LIFE
    refusal(Compression.LZ4, compress(Compression.LZ4, REAL_LIFE, magic=0))


@pytest.mark.parametrize("frame", [b"", b"\x04\x22\x4d\x18", b"\x04\x22\x4d\x18\x6d\x40", b"\x04\x22\x4d\x18\x60\x40"])
def test_lz4_headers_that_are_cut(frame: bytes) -> None:
    with pytest.raises(KafkaError):
        decompress(Compression.LZ4, frame, max_size=MIB, magic=0)


@pytest.mark.parametrize(("data", "digest"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)])
def test_xxhash32(data: bytes, digest: int) -> None:
    assert lz4._xxh32(data) == digest


def test_a_zstd_frame_may_leave_its_size_out() -> None:
    import zstandard

    streamed = zstandard.ZstdCompressor(write_content_size=False).compress(REAL_LIFE)
    assert decompress(Compression.ZSTD, streamed, max_size=MIB) == REAL_LIFE
    refusal(Compression.ZSTD, streamed, len(REAL_LIFE) - 1)
