"""Checks all records in a client's batch: a small batch in one piece, a large batch piece by piece.

The event loop checks up to a megabyte of records, which takes a few milliseconds at most. Larger batches go to another
thread: a batch of a megabyte may legitimately inflate to a hundred. The thread inflates and walks them in pieces, so
that memory is bounded, and neither the codec nor the walk holds the interpreter lock for longer than a piece takes.
Records that inflate beyond MAX_INFLATED_SIZE are rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import COMPRESSION_MASK, HEADER_SIZE, TIMESTAMP_TYPE, BatchHeader
from protocol.records.codecs import check_descriptor, compress, decompress, pieces, stream
from protocol.records.compression import Compression, TooLarge
from protocol.records.record import MAX_INFLATED_SIZE
from protocol.records.walk import UNUSUAL, RecordRules, Walk, invalid, largest_timestamp

LOOP_BYTES: Final = 1024 * 1024
"""Maximum number of bytes that the event loop inflates and walks for a batch: the default max.request.size of the Java
producer, which counts records before compression. Gzip, the slowest codec, takes three milliseconds for a megabyte.
"""

ALWAYS_BYTES: Final = 64 * 1024
USUAL_RATIO: Final = 16
"""The event loop also inflates at most ALWAYS_BYTES plus USUAL_RATIO times the compressed size: a read of half a
megabyte can contain hundreds of small batches that inflate a thousandfold. Logs and JSON compress to a tenth."""


CODECS: Final = tuple(Compression)


class TooLong(Exception):
    """Records that would block the event loop for too long. Another thread must `settle` them."""


class RecodingTarget(NamedTuple):
    """The codec and size limit that records are recoded to."""

    codec: Compression
    level: int | None
    max_bytes: int


class Looked(NamedTuple):
    """The result of checking all records: the largest timestamp, True if offset deltas are 0, 1, 2 and so on, and the
    recoded records."""

    max_timestamp: int
    consecutive: bool
    recoded: bytes | None


def usual(batch: memoryview, codec: int, count: int, max_timestamp: int, base_timestamp: int) -> bool:
    """True if the records of a batch are valid and their largest timestamp is the header's, as in nearly all batches.
    `look` checks all other batches. Raises TooLong.
    """
    payload = batch[HEADER_SIZE:]
    try:
        data = _inflated(codec, payload)
    except KafkaError:
        return False
    return largest_timestamp(data, count, base_timestamp) == max_timestamp


def look(
    batch: memoryview, header: BatchHeader, rules: RecordRules, target: RecodingTarget | None, *, at_length: bool
) -> Looked:
    """Checks all records of a batch whose header and CRC are valid.

    Raises KafkaError(INVALID_RECORD) for malformed records, InvalidRecords, which names the records that break a rule,
    and TooLong (not with `at_length`).
    """
    payload = header.payload(batch, 0)
    codec = header.compression
    if at_length:
        return _by_pieces(_pieces(codec, payload), header, rules, target)
    try:
        data = _inflated(codec, payload)
    except KafkaError as error:
        raise invalid(error.message) from None
    max_timestamp = UNUSUAL
    if not rules.keys and not rules.unstamped:
        max_timestamp = largest_timestamp(data, header.records_count, header.base_timestamp)
    breaks_times = rules.times and (rules.earliest > -1 or max_timestamp > rules.latest)
    if max_timestamp == UNUSUAL or breaks_times or len(data) > rules.largest:
        return _by_pieces(iter((data,)), header, rules, target)
    return Looked(max_timestamp, True, None if target is None else compress(target.codec, data, target.level))


def _inflated(codec: int, payload: memoryview) -> bytes:
    """Returns the inflated records. Raises TooLong, and KafkaError(CORRUPT_MESSAGE) if they are damaged."""
    limit = loop_limit(len(payload))
    if not codec and len(payload) <= LOOP_BYTES:
        return bytes(payload)
    check_descriptor(codec, payload)
    try:
        return decompress(CODECS[codec], payload, max_size=limit)
    except TooLarge:
        raise TooLong from None


def loop_limit(size: int) -> int:
    """Returns the largest inflated size that the event loop accepts for `size` compressed bytes."""
    return min(LOOP_BYTES, ALWAYS_BYTES + USUAL_RATIO * size)


def _pieces(codec: Compression, payload: memoryview) -> Iterator[bytes]:
    check_descriptor(codec, payload)
    yield from pieces(codec, payload)


def _by_pieces(
    inflated: Iterator[bytes], header: BatchHeader, rules: RecordRules, target: RecodingTarget | None
) -> Looked:
    stamp = header.max_timestamp if header.attributes & TIMESTAMP_TYPE else None
    walk = Walk(header.records_count, header.base_offset, header.base_timestamp, stamp, rules)
    recoder = None if target is None else stream(target.codec, target.level)
    output: list[bytes] = []
    size = seen = 0
    try:
        for piece in inflated:
            seen += len(piece)
            if seen > MAX_INFLATED_SIZE and header.attributes & COMPRESSION_MASK:
                message = f"compressed records of more than {MAX_INFLATED_SIZE} bytes"
                raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message)
            walk.feed(piece)
            if recoder is not None and target is not None and size <= target.max_bytes:
                output.append(recoder.write(piece))
                size += len(output[-1])
    except KafkaError as error:
        if error.code is ErrorCode.CORRUPT_MESSAGE:  # an error of the codec
            raise invalid(error.message) from None
        raise
    walk.end()
    if not walk.consecutive and header.attributes & COMPRESSION_MASK and target is None:
        raise invalid("the offset deltas of compressed records are not 0, 1, 2 and so on")
    if recoder is not None:
        output.append(recoder.end())
    return Looked(walk.max_timestamp, walk.consecutive, None if recoder is None else b"".join(output))
