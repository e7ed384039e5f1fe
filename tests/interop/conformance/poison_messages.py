"""Message sets with valid CRCs and invalid contents, as clients before record batches send them: v0 and v1."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from protocol.records.codecs import compress
from protocol.records.compression import Compression
from tests.interop.conformance.poison import (
    APPENDED,
    COMPACTED,
    FAR_MS,
    NO_PAST,
    TO_GZIP,
    TO_NONE,
    Poison,
    flipped,
    noise,
)
from tests.interop.conformance.records import OLD_MS

CODECS = GZIP, SNAPPY, LZ4 = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4)
LOG_APPEND_TIME = 8
HOUR = {"message_timestamp_after_max_ms": "3600000"}
"""The option with its default since Apache Kafka 4."""


def field(value: bytes | None, length: int | None = None) -> bytes:
    size = -1 if value is None else len(value)
    return struct.pack(">i", size if length is None else length) + (value or b"")


def message(
    magic: int,
    offset: int = 0,
    *,
    key: bytes | None = b"k",
    value: bytes | None = b"value",
    attributes: int = 0,
    time: int = OLD_MS,
    lengths: tuple[int | None, int | None] = (None, None),
    size: int | None = None,
    crc: int | None = None,
    says: int | None = None,
    tail: bytes = b"",
) -> bytes:
    """Returns a message; `lengths` are the claimed lengths of key and value, `size` and `says` its claimed size and
    magic."""
    body = struct.pack(">bb", magic if says is None else says, attributes)
    if magic:
        body += struct.pack(">q", time)
    body += field(key, lengths[0]) + field(value, lengths[1]) + tail
    whole = struct.pack(">I", crc32(body) if crc is None else crc) + body
    return struct.pack(">qi", offset, len(whole) if size is None else size) + whole


def several(magic: int, count: int = 3, first: int = 0) -> bytes:
    return b"".join(message(magic, first + n) for n in range(count))


def wrapped(magic: int, codec: Compression, inner: bytes, offset: int = 2, attributes: int = 0, **fields: Any) -> bytes:
    value = compress(codec, inner, magic=magic)
    return message(magic, offset, key=None, value=value, attributes=attributes | codec, **fields)


def plain(magic: int) -> Iterator[tuple[str, bytes]]:
    one = message(magic)
    yield "sound messages", several(magic)
    yield "a wrong CRC", message(magic, crc=5)
    yield "a wrong CRC in the second", one + message(magic, 1, crc=5)
    yield "a message cut short", several(magic)[:-2]
    yield "the only message cut short", one[:-2]
    yield "a size of 0", message(magic, size=0)
    yield "a negative size", message(magic, size=-1)
    yield "a size too small", message(magic, size=12)
    yield "a size too large", message(magic, size=500)
    yield "a key length beyond the message", message(magic, lengths=(500, None))
    yield "a key length of -2", message(magic, lengths=(-2, None), key=None)
    yield "a value length beyond the message", message(magic, lengths=(None, 500))
    yield "a value length too small", message(magic, lengths=(None, 2))
    yield "a value length of -2", message(magic, lengths=(None, -2), value=None)
    yield "bytes after the value", message(magic, tail=b"junk")
    yield "a null key and value", message(magic, key=None, value=None)
    yield "offsets that repeat", one + one
    yield "offsets from 7", several(magic, first=7)
    yield "offsets that descend", message(magic, 1) + one
    yield "negative offsets", several(magic, first=-9)
    yield "codec 4", message(magic, attributes=4)
    yield "codec 7", message(magic, attributes=7)
    yield "unused attributes", message(magic, attributes=0x70)
    yield "log append time, set by the producer", message(magic, attributes=LOG_APPEND_TIME)
    yield "a batch's magic", message(magic, says=2)
    yield "magic 3", message(magic, says=3)
    yield "a negative magic", message(magic, says=-1)
    yield "the other magic behind", one + message(1 - magic, 1)
    yield "a compressed message behind", one + wrapped(magic, GZIP, several(magic))
    yield "a message behind a compressed one", wrapped(magic, GZIP, several(magic)) + message(magic, 3)
    yield "two compressed ones", wrapped(magic, GZIP, several(magic)) * 2
    if magic:
        yield "no timestamp", message(magic, time=-1)
        yield "a timestamp below -1", message(magic, time=-2)


def compressed(magic: int, codec: Compression) -> Iterator[tuple[str, bytes]]:
    sound = several(magic)
    stream = compress(codec, sound, magic=magic)
    inner: dict[str, bytes] = {
        "sound messages": sound,
        "no messages": b"",
        "random bytes": noise(60),
        "zeros": bytes(60),
        "a message cut short": sound[:-2],
        "only a message cut short": message(magic)[:-2],
        "a wrong CRC": message(magic, crc=5),
        "a size of 0": message(magic, size=0),
        "a negative size": message(magic, size=-1),
        "a size of 2^31 - 1": message(magic, size=(1 << 31) - 1),
        "a key length beyond the message": message(magic, lengths=(500, None)),
        "a value length too small": message(magic, lengths=(None, 2)),
        "the other magic": several(1 - magic),
        "a batch's magic": message(magic, says=2),
        "a batch's magic and a wrong CRC": message(magic, says=2, crc=5),
        "magic 3": message(magic, says=3),
        "a negative magic": message(magic, says=-1),
        "the other magic, and a wrong CRC": message(1 - magic, crc=5),
        "a value length of -2": message(magic, lengths=(None, -2), value=None),
        "bytes after the value": message(magic, tail=b"junk"),
        "offsets that repeat": message(magic) + message(magic),
        "offsets from 1": several(magic, first=1),
        "offsets with a gap": message(magic) + message(magic, 2),
        "offsets that descend": message(magic, 1) + message(magic),
        "a compressed message": wrapped(magic, codec, sound),
        "a compressed message in a compressed one": wrapped(magic, codec, wrapped(magic, codec, sound)),
        "log append time within": message(magic, attributes=LOG_APPEND_TIME),
    }
    if magic:
        inner["no timestamp"] = message(magic, time=-1)
        inner["a timestamp below -1"] = message(magic, time=-2)
    for name, data in inner.items():
        yield name, wrapped(magic, codec, data)
    streams = {
        "a stream of random bytes": noise(60),
        "no stream": b"",
        "a stream cut by 4 bytes": stream[:-4],
        "a stream cut by half": stream[: len(stream) // 2],
        "a bit turned over at the end": flipped(stream, len(stream) - 1),
        "plain messages": sound,
    }
    for name, body in streams.items():
        yield name, message(magic, 2, key=None, value=body, attributes=codec)
    yield "a null value", message(magic, 2, key=None, value=None, attributes=codec)
    yield "a wrapper of offset 0", wrapped(magic, codec, sound, 0)
    yield "a wrapper of offset 1", wrapped(magic, codec, sound, 1)
    yield "a wrapper of offset 9", wrapped(magic, codec, sound, 9)
    yield "a wrapper of offset -1", wrapped(magic, codec, sound, -1)
    yield "a wrapper with a key", message(magic, 2, value=stream, attributes=codec)
    yield "a wrapper with log append time", wrapped(magic, codec, sound, attributes=LOG_APPEND_TIME)


def of_topics(magic: int) -> Iterator[tuple[str, Poison]]:
    keyless = message(magic, key=None) + message(magic, 1) + message(magic, 2, key=None)
    for name, data in (("plain", keyless), ("gzip", wrapped(magic, GZIP, keyless))):
        yield f"compacted, {name}: messages without keys", Poison(data, COMPACTED)
    yield "to gzip, plain: sound messages", Poison(several(magic), TO_GZIP)
    yield "to none, lz4: sound messages", Poison(wrapped(magic, LZ4, several(magic)), TO_NONE)
    yield "to none, lz4: a message cut short", Poison(wrapped(magic, LZ4, several(magic)[:-2]), TO_NONE)
    yield "log append time, lz4: sound messages", Poison(wrapped(magic, LZ4, several(magic)), APPENDED)
    if magic:
        yield "no past, plain: too old", Poison(message(magic, time=1), NO_PAST)
        yield "no future, plain: ahead", Poison(message(magic, time=FAR_MS), HOUR)
        yield "no future, gzip: ahead", Poison(wrapped(magic, GZIP, message(magic, time=FAR_MS)), HOUR)


def all_cases() -> Iterator[tuple[str, Poison]]:
    for magic in (0, 1):
        yield from ((f"v{magic}, plain: {name}", Poison(data)) for name, data in plain(magic))
        for codec in CODECS:
            for name, data in compressed(magic, codec):
                yield f"v{magic}, {codec.name.lower()}: {name}", Poison(data)
        yield from ((f"v{magic}, {name}", poison) for name, poison in of_topics(magic))


POISONED_MESSAGES = dict(all_cases())
