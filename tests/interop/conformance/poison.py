"""Batches with a valid CRC and invalid contents, and a few unusual but valid batches: v2, single and compressed."""

from __future__ import annotations

import gzip
import random
import zlib
from typing import NamedTuple

import lz4.frame
import zstandard

from protocol.records.batch import COMPRESSION_MASK, HEADER, LOG_OVERHEAD, BatchHeader, seal
from protocol.records.codecs import compress
from protocol.records.compression import Compression
from protocol.records.varint import encode_varint
from tests.interop.conformance.records import OLD_MS

NONE, GZIP, SNAPPY, LZ4, ZSTD = Compression
CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
FAR_MS = OLD_MS + (1 << 45)
LOG_APPEND_TIME = 8
OVERLONG = b"\x80" * 5 + b"\0"
OVERLONG_LONG = b"\x80" * 10 + b"\0"

PLAIN: dict[str, str] = {}
COMPACTED = {"cleanup_policy": "compact"}
APPENDED = {"message_timestamp_type": "LogAppendTime"}
TO_GZIP = {"compression_type": "gzip"}
TO_NONE = {"compression_type": "uncompressed"}
NO_PAST = {"message_timestamp_before_max_ms": "3600000"}


class Poison(NamedTuple):
    """The bytes for a partition, and the configs of its topic."""

    data: bytes
    configs: dict[str, str] = PLAIN


def noise(size: int, seed: int = 7) -> bytes:
    return random.Random(seed).randbytes(size)


def field(value: bytes | None) -> bytes:
    return encode_varint(-1) if value is None else encode_varint(len(value)) + value


def header(key: bytes | None, value: bytes | None) -> bytes:
    return field(key) + field(value)


def record(
    delta: int = 0,
    *,
    time: int | bytes = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"value",
    headers: bytes = b"\0",
    length: int | bytes | None = None,
    attributes: int = 0,
    offset: bytes | None = None,
) -> bytes:
    """Returns a record; `length` is its claimed length, `headers` their count and the bytes after it."""
    times = time if isinstance(time, bytes) else encode_varint(time)
    body = bytes([attributes]) + times + (encode_varint(delta) if offset is None else offset)
    body += field(key) + field(value) + headers
    if isinstance(length, bytes):
        return length + body
    return encode_varint(len(body) if length is None else length) + body


def several(count: int) -> bytes:
    return b"".join(record(delta) for delta in range(count))


def batch(payload: bytes, count: int = 1, codec: Compression = NONE, **fields: int) -> bytes:
    """Returns a batch of bytes that are compressed already, with a valid CRC."""
    fields = {"last_offset_delta": count - 1, "attributes": codec, **fields}
    head = BatchHeader(0, 61 - LOG_OVERHEAD + len(payload), -1, 2, 0, 0, 0, OLD_MS, OLD_MS, -1, -1, -1, count)
    buffer = bytearray(HEADER.pack(*head._replace(**fields))) + payload
    seal(buffer, 0, len(buffer) - LOG_OVERHEAD)
    return bytes(buffer)


def packed(payload: bytes, count: int, codec: Compression, **fields: int) -> bytes:
    """Returns a batch of records that it compresses, with a valid CRC."""
    attributes = fields.pop("attributes", 0) & ~COMPRESSION_MASK | codec
    return batch(compress(codec, payload), count, codec, attributes=attributes, **fields)


KEY_OF_MINUS_2 = record(key=None).replace(b"\x01", encode_varint(-2), 1)
RECORDS: dict[str, tuple[bytes, int]] = {
    "sound records": (several(3), 3),
    "random bytes": (noise(60), 1),
    "more random bytes": (noise(600, 8), 20),
    "zeros": (bytes(60), 3),
    "ones": (b"\xff" * 60, 2),
    "no bytes": (b"", 1),
    "a count of 3 with 2 records": (several(2), 3),
    "a count of 1 with 2 records": (several(2), 1),
    "bytes after the last record": (several(2) + b"\0\0", 2),
    "a byte after the last record": (several(2) + b"\x01", 2),
    "a record cut short": (several(2)[:-3], 2),
    "a record cut in its value length": (several(1)[:-7], 1),
    "a length too large": (record(length=99), 1),
    "a length too large, with records behind": (record(length=20) + several(3), 2),
    "a length too small": (record(length=7), 1),
    "a length of 0": (record(length=0), 1),
    "a negative length": (record(length=-1), 1),
    "a length of 2^31 - 1": (record(length=(1 << 31) - 1), 1),
    "a length in 6 bytes": (record(length=OVERLONG), 1),
    "a length that is cut": (b"\x80", 1),
    "a timestamp delta in 11 bytes": (record(time=OVERLONG_LONG), 1),
    "a timestamp delta in 10 bytes": (record(time=b"\x80" * 9 + b"\0"), 1),
    "an offset delta in 6 bytes": (record(offset=OVERLONG), 1),
    "a key length beyond the record": (record()[:4] + encode_varint(500) + record()[5:], 1),
    "a key length of -2": (KEY_OF_MINUS_2, 1),
    "a null key and value": (record(key=None, value=None), 1),
    "an empty key": (record(key=b""), 1),
    "a value length beyond the record": (record(value=None)[:-2] + encode_varint(500) + b"\0", 1),
    "a value length of -2": (record(value=None)[:-2] + encode_varint(-2) + b"\0", 1),
    "a negative header count": (record(headers=encode_varint(-1)), 1),
    "a header count of 2^31 - 1": (record(headers=encode_varint((1 << 31) - 1)), 1),
    "a header count beyond the record": (record(headers=encode_varint(3) + header(b"h", b"v")), 1),
    "a header count too small": (record(headers=encode_varint(1) + header(b"h", b"v") * 2), 1),
    "a header count in 6 bytes": (record(headers=OVERLONG), 1),
    "headers": (record(headers=encode_varint(2) + header(b"h", b"v") + header(b"", b"")), 1),
    "a header with a null key": (record(headers=encode_varint(1) + header(None, b"v")), 1),
    "a header with a null value": (record(headers=encode_varint(1) + header(b"h", None)), 1),
    "a header with a key that is cut": (record(headers=encode_varint(1) + encode_varint(9) + b"h"), 1),
    "a header with a value that is cut": (record(headers=encode_varint(1) + field(b"h") + encode_varint(9)), 1),
    "a header key that is not UTF-8": (record(headers=encode_varint(1) + header(b"\xff\xfe", b"v")), 1),
    "a header with a value length of -5": (record(headers=encode_varint(1) + field(b"h") + encode_varint(-5)), 1),
    "record attributes": (record(attributes=0x7F), 1),
    "record attributes with the sign": (record(attributes=0xFF), 1),
    "offset deltas from 1": (record(1) + record(2), 2),
    "offset deltas that repeat": (record(0) + record(0), 2),
    "offset deltas that descend": (record(1) + record(0), 2),
    "offset deltas with a gap": (record(0) + record(2), 2),
    "a negative offset delta": (record(-1) + record(1), 2),
    "an hour ahead and more": (record(time=FAR_MS - OLD_MS) + record(1), 2),
    "a timestamp below -1": (record(time=-OLD_MS - 1000), 1),
    "a timestamp of -2^63": (record(time=-OLD_MS - (1 << 62)) + record(1, time=(1 << 63) - OLD_MS), 2),
    "no timestamp": (record(time=-OLD_MS - 1), 1),
}
"""Records, and their number according to the batch's header."""


def framed() -> dict[str, Poison]:
    cases = {f"plain: {name}": Poison(batch(data, count)) for name, (data, count) in RECORDS.items()}
    for codec in CODECS:
        for name, (data, count) in RECORDS.items():
            cases[f"{codec.name.lower()}: {name}"] = Poison(packed(data, count, codec))
    return cases


def streams() -> dict[str, Poison]:
    """Returns faults in the compressed bytes."""
    cases: dict[str, Poison] = {}
    for codec in CODECS:
        whole = compress(codec, several(3))
        second = compress(codec, several(3)[len(several(2)) :])
        bodies = {
            "a stream of random bytes": noise(60),
            "no stream": b"",
            "a stream cut by a byte": whole[:-1],
            "a stream cut by 4 bytes": whole[:-4],
            "a stream cut by half": whole[: len(whole) // 2],
            "a stream of 3 bytes": whole[:3],
            "bytes behind the stream": whole + b"junk",
            "30 bytes behind the stream": whole + noise(30),
            "two streams": compress(codec, several(2)) + second,
            "a bit turned over in the middle": flipped(whole, len(whole) // 2),
            "a bit turned over at the end": flipped(whole, len(whole) - 1),
            "a bit turned over in the header": flipped(whole, 4),
            "another codec's stream": compress(Compression(codec % 4 + 1), several(3)),
            "plain records": several(3),
        }
        cases |= {f"{codec.name.lower()}: {name}": Poison(batch(body, 3, codec)) for name, body in bodies.items()}
    return cases


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def of_a_codec() -> dict[str, Poison]:
    """Returns faults that only one codec has."""
    data = several(3)
    linked = lz4.frame.compress(data, block_linked=True, block_size=lz4.frame.BLOCKSIZE_MAX64KB, store_size=False)
    checked = lz4.frame.compress(data, block_linked=False, content_checksum=True, block_checksum=True)
    sized = lz4.frame.compress(data, block_linked=False, store_size=True)
    skippable = b"\x50\x2a\x4d\x18\x04\0\0\0junk"
    zstd_checked = zstandard.ZstdCompressor(write_checksum=True).compress(data)
    empty_zstd = zstandard.ZstdCompressor().compress(b"")
    raw = compress(SNAPPY, data)[20:]
    bodies: dict[str, tuple[bytes, Compression]] = {
        "gzip: a wrong checksum": (gzip.compress(data)[:-8] + b"\0\0\0\0" + gzip.compress(data)[-4:], GZIP),
        "gzip: a wrong size": (gzip.compress(data)[:-4] + b"\x01\0\0\0", GZIP),
        "gzip: a zlib stream": (zlib.compress(data), GZIP),
        "gzip: a file name in the header": (gzip_named(data), GZIP),
        "gzip: an empty member before": (gzip.compress(b"") + gzip.compress(data), GZIP),
        "gzip: an empty member behind": (gzip.compress(data) + gzip.compress(b""), GZIP),
        "lz4: linked blocks": (linked, LZ4),
        "lz4: checksums": (checked, LZ4),
        "lz4: a wrong content checksum": (flipped(checked, len(checked) - 1), LZ4),
        "lz4: a content size": (sized, LZ4),
        "lz4: a skippable frame before": (skippable + compress(LZ4, data), LZ4),
        "lz4: a wrong header checksum": (flipped(compress(LZ4, data), 6), LZ4),
        "zstd: a checksum": (zstd_checked, ZSTD),
        "zstd: a wrong checksum": (flipped(zstd_checked, len(zstd_checked) - 1), ZSTD),
        "zstd: a skippable frame before": (skippable + compress(ZSTD, data), ZSTD),
        "zstd: a skippable frame behind": (compress(ZSTD, data) + skippable, ZSTD),
        "zstd: an empty frame behind": (compress(ZSTD, data) + empty_zstd, ZSTD),
        "snappy: one raw block": (raw, SNAPPY),
        "snappy: a raw block that claims 2^31": (b"\xff\xff\xff\xff\x07" + raw[1:], SNAPPY),
        "snappy: a raw block that claims too much": (bytes([raw[0] + 5]) + raw[1:], SNAPPY),
        "snappy: a block length beyond the end": (compress(SNAPPY, data)[:16] + b"\0\0\1\0" + raw, SNAPPY),
        "snappy: a negative block length": (compress(SNAPPY, data)[:16] + b"\xff\0\0\0" + raw, SNAPPY),
        "snappy: three bytes behind": (compress(SNAPPY, data) + b"\0\0\0", SNAPPY),
        "snappy: a header alone": (compress(SNAPPY, data)[:16], SNAPPY),
        "snappy: an empty block before": (
            compress(SNAPPY, data)[:16] + b"\0\0\0\1\0" + compress(SNAPPY, data)[16:],
            SNAPPY,
        ),
    }
    return {name: Poison(batch(body, 3, codec)) for name, (body, codec) in bodies.items()}


def gzip_named(data: bytes) -> bytes:
    whole = gzip.compress(data)
    return whole[:3] + b"\x08" + whole[4:10] + b"name\0" + whole[10:]


def headers() -> dict[str, Poison]:
    """Returns faults in the batch's header, with valid records."""
    cases = {
        "attributes: codec 5": Poison(batch(several(3), 3, attributes=5)),
        "attributes: codec 7": Poison(batch(several(3), 3, attributes=7)),
        "attributes: control": Poison(batch(several(3), 3, attributes=0x20)),
        "attributes: control, of random bytes": Poison(batch(noise(50), 3, attributes=0x20)),
        "attributes: log append time": Poison(batch(several(3), 3, attributes=LOG_APPEND_TIME)),
        "attributes: a delete horizon": Poison(batch(several(3), 3, attributes=0x40)),
        "attributes: unused, high byte": Poison(batch(several(3), 3, attributes=0x0100)),
        "header: a max timestamp too large": Poison(batch(several(3), 3, max_timestamp=OLD_MS + 999)),
        "header: a max timestamp too small": Poison(batch(record(time=9), 1)),
        "header: a max timestamp beyond time": Poison(batch(several(3), 3, max_timestamp=FAR_MS)),
        "header: a base timestamp of -1": Poison(batch(several(3), 3, base_timestamp=-1, max_timestamp=-1)),
        "header: no sequence": Poison(batch(several(3), 3, producer_id=77, producer_epoch=0)),
        "header: no records": Poison(batch(b"", 0)),
        "header: no records, but bytes": Poison(batch(several(1), 0, last_offset_delta=0)),
    }
    for codec in (NONE, *CODECS):
        name = codec.name.lower()
        cases[f"{name}: log append time, set by the producer"] = Poison(
            packed(several(3), 3, codec, attributes=LOG_APPEND_TIME)
        )
        cases[f"{name}: a max timestamp that is not"] = Poison(packed(several(3), 3, codec, max_timestamp=OLD_MS + 5))
    return cases


def rules() -> dict[str, Poison]:
    """Returns records that violate topics' rules."""
    keyless = record(0) + record(1, key=None) + record(2) + record(3, key=None)
    cases: dict[str, Poison] = {}
    for codec in (NONE, *CODECS):
        name = codec.name.lower()
        cases |= {
            f"compacted, {name}: records without keys": Poison(packed(keyless, 4, codec), COMPACTED),
            f"compacted, {name}: no key, and cut": Poison(packed(keyless[:-1], 4, codec), COMPACTED),
            f"compacted, {name}: no key, and ahead": Poison(
                packed(keyless + record(4, time=FAR_MS - OLD_MS), 5, codec), COMPACTED
            ),
            f"compacted, {name}: a key of length -2": Poison(packed(KEY_OF_MINUS_2, 1, codec), COMPACTED),
            f"no past, {name}: too old": Poison(packed(several(3) + record(3, time=-OLD_MS - 1), 4, codec), NO_PAST),
            f"log append time, {name}: sound records": Poison(packed(several(3), 3, codec), APPENDED),
            f"log append time, {name}: ahead": Poison(packed(record(time=FAR_MS - OLD_MS), 1, codec), APPENDED),
            f"log append time, {name}: set by the producer": Poison(
                packed(several(3), 3, codec, attributes=LOG_APPEND_TIME), APPENDED
            ),
            f"to gzip, {name}: sound records": Poison(packed(several(3), 3, codec), TO_GZIP),
            f"to gzip, {name}: a record cut short": Poison(packed(several(2)[:-3], 2, codec), TO_GZIP),
            f"to gzip, {name}: a length too large": Poison(packed(record(length=20) + several(3), 2, codec), TO_GZIP),
            f"to gzip, {name}: offset deltas that repeat": Poison(packed(record(0) + record(0), 2, codec), TO_GZIP),
            f"to gzip, {name}: a stream of random bytes": Poison(batch(noise(60), 2, codec), TO_GZIP),
            f"to none, {name}: sound records": Poison(packed(several(3), 3, codec), TO_NONE),
            f"to none, {name}: a length too large": Poison(packed(record(length=20) + several(3), 2, codec), TO_NONE),
            f"to none, {name}: a null header key": Poison(
                packed(record(headers=encode_varint(1) + header(None, b"v")), 1, codec), TO_NONE
            ),
        }
    return cases


POISON = framed() | streams() | of_a_codec() | headers() | rules()
