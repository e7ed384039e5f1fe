"""Validates all records of a v2 batch without creating objects for them.

`largest_timestamp` validates nearly all batches in one piece; it gives up on any unusual batch. `Walk` finds the error
in such a batch. It takes the inflated records piece by piece, so that it needs the memory of a single piece.

Source of the rules and their order: org.apache.kafka.common.record.DefaultRecord and DefaultRecordBatch, and
org.apache.kafka.storage.internals.log.LogValidator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.errors import ErrorCode, InvalidRecords, KafkaError
from protocol.records.record import too_large
from protocol.records.varint import decode_varint, decode_varlong

if TYPE_CHECKING:
    from mypy_extensions import i64

UNUSUAL: Final = -2
"""The result for an unusual batch. No usual batch has this timestamp (-1 means none)."""

MAX_USUAL_TIMESTAMP: Final = 1 << 61
"""Upper bound of a usual base timestamp. The sum of two usual base timestamps fits into 64 bits."""

ONE_BYTE: Final = 0x80
MAX_INT: Final = (1 << 31) - 1
LOW_BITS: Final = 0x7F
MAX_SHIFT: Final = 28
MAX_LONG_SHIFT: Final = 56
"""The shift of the last byte of a timestamp delta. A delta of ten bytes is unusual."""

LONGEST_FIELDS: Final = 5 + 1 + 10 + 5 + 5
"""Maximum number of bytes of the fields that are read together: length, attributes, timestamp delta, offset delta, key
length."""

NO_KEY: Final = "Compacted topic cannot accept message without key"
MAX_LISTED_ERRORS: Final = 10_000
"""Maximum number of invalid records that the response lists for a batch, because a batch can inflate to millions. All
invalid records are counted."""


def largest_timestamp(data: bytes, records_count: int, base_timestamp: int) -> int:
    """Returns the largest timestamp of a usual batch's encoded records, or -1 without timestamps; UNUSUAL for any other
    batch.

    The records of a usual batch are as many as its header says, well-formed, with offset deltas 0, 1, 2 and so on, and
    timestamps of at least -1.
    """
    if not -1 <= base_timestamp < MAX_USUAL_TIMESTAMP:
        return UNUSUAL
    try:
        return _largest_timestamp(data, records_count, base_timestamp)
    except IndexError:
        return UNUSUAL


def _largest_timestamp(data: bytes, records_count: i64, base_timestamp: i64) -> i64:
    size: i64 = len(data)
    at: i64 = 0
    index: i64 = 0
    largest: i64 = -1
    raw: i64 = 0
    end: i64 = 0
    while index < records_count:
        raw = data[at]
        at += 1
        if raw >= ONE_BYTE:
            raw, at = _rest(data, at, raw)
        end = at + (raw >> 1)
        if raw & 1 or end > size:
            return UNUSUAL
        at += 1  # attributes, which have no meaning yet
        raw = data[at]
        at += 1
        if raw >= ONE_BYTE:
            raw, at = _rest_of_long(data, at, raw)
        raw = base_timestamp + ((raw >> 1) ^ -(raw & 1))
        if raw > largest:
            largest = raw
        elif raw < -1:
            return UNUSUAL
        raw = data[at]
        at += 1
        if raw >= ONE_BYTE:
            raw, at = _rest(data, at, raw)
        if raw != index << 1:
            return UNUSUAL
        raw = data[at]
        at += 1
        if raw >= ONE_BYTE:
            raw, at = _rest(data, at, raw)
        if not raw & 1:
            at += raw >> 1
            if at >= end:
                return UNUSUAL
        raw = data[at]
        at += 1
        if raw >= ONE_BYTE:
            raw, at = _rest(data, at, raw)
        if not raw & 1:
            at += raw >> 1
            if at >= end:
                return UNUSUAL
        raw = data[at]
        at += 1
        if raw:
            at = _behind_headers(data, at, raw, end)
        if at != end:
            return UNUSUAL
        index += 1
    return largest if at == size else UNUSUAL


def _rest(data: bytes, at: i64, first: i64) -> tuple[i64, i64]:
    """Reads the rest of an int32 varint after its first byte; returns its zig-zag form and the position after it.
    Raises IndexError past the end, or for more than five bytes."""
    raw: i64 = first & LOW_BITS
    shift: i64 = 7
    byte: i64 = data[at]
    at += 1
    while byte >= ONE_BYTE:
        raw |= (byte & LOW_BITS) << shift
        shift += 7
        if shift > MAX_SHIFT:
            raise IndexError
        byte = data[at]
        at += 1
    return raw | byte << shift, at


def _rest_of_long(data: bytes, at: i64, first: i64) -> tuple[i64, i64]:
    """Works like `_rest`, for an int64 of at most nine bytes, which is enough in usual batches."""
    raw: i64 = first & LOW_BITS
    shift: i64 = 7
    byte: i64 = data[at]
    at += 1
    while byte >= ONE_BYTE:
        raw |= (byte & LOW_BITS) << shift
        shift += 7
        if shift > MAX_LONG_SHIFT:
            raise IndexError
        byte = data[at]
        at += 1
    return raw | byte << shift, at


def _behind_headers(data: bytes, at: i64, count: i64, end: i64) -> i64:
    """Returns the position after a record's headers, whose count begins with the byte `count`, or a position after
    `end` for malformed headers."""
    raw: i64 = count
    if raw >= ONE_BYTE:
        raw, at = _rest(data, at, raw)
    if raw & 1:
        return end + 1
    left: i64 = raw >> 1
    while left > 0:
        raw = data[at]
        at += 1
        if raw >= ONE_BYTE:
            raw, at = _rest(data, at, raw)
        at += raw >> 1
        if raw & 1 or at >= end:
            return end + 1
        raw = data[at]
        at += 1
        if raw >= ONE_BYTE:
            raw, at = _rest(data, at, raw)
        if not raw & 1:
            at += raw >> 1
            if at > end:
                return end + 1
        left -= 1
    return at


class RecordRules:
    """A topic's rules for each record: about its key, the bounds of its timestamp, and the timestamp's type."""

    __slots__ = ("earliest", "keys", "largest", "latest", "times", "unstamped")

    def __init__(
        self,
        *,
        keys: bool,
        unstamped: bool,
        times: bool,
        earliest: int,
        latest: int,
        largest: int = MAX_INT,
    ) -> None:
        """`unstamped` is True if the batch has LogAppendTime, which no producer may set. `largest` is the largest size
        of a record."""
        self.keys = keys
        self.largest = largest
        self.unstamped = unstamped
        self.times = times
        self.earliest = earliest
        self.latest = latest


HEAD: Final = 0
VALUE: Final = 1
HEADERS: Final = 2
HEADER_KEY: Final = 3
HEADER_VALUE: Final = 4


class Walk:
    """Validates the records of a batch from the first to the last. Call `feed` with each piece, then `end`."""

    __slots__ = (
        "_at",
        "_behind",
        "_code",
        "_count",
        "_end",
        "_first",
        "_headers",
        "_last",
        "_next",
        "_offset",
        "_rest",
        "_rules",
        "_stamp",
        "consecutive",
        "errors",
        "index",
        "invalid_count",
        "max_timestamp",
    )  # fmt: skip

    def __init__(
        self, records_count: int, base_offset: int, base_timestamp: int, stamp: int | None, rules: RecordRules
    ) -> None:
        """`stamp` is the timestamp of all records of a batch with LogAppendTime, otherwise None."""
        self.index = 0
        self.max_timestamp = -1
        """The largest timestamp of the records so far."""
        self.consecutive = True
        """True while the offset deltas are 0, 1, 2 and so on."""
        self.errors: list[tuple[int, str | None]] = []
        """Index and error of the records that break the topic's rules."""
        self.invalid_count = 0
        """Number of records that break the topic's rules, listed or not."""
        self._code = ErrorCode.INVALID_RECORD
        self._count = records_count
        self._offset = base_offset
        self._first = base_timestamp
        self._stamp = stamp
        self._rules = rules
        self._rest = b""
        self._at = 0  # position of `_rest`, from the first record on
        self._behind = 0  # position of the next field, after a key or value that is skipped
        self._end = 0  # position of the record's end
        self._next = HEAD
        self._headers = 0
        self._last = False

    def feed(self, piece: bytes) -> None:
        """Validates the next piece. Raises KafkaError(INVALID_RECORD) at the first malformed record."""
        data = self._rest + piece if self._rest else piece
        at = self._go(data)
        self._rest = data[at:]
        self._at += at

    def end(self) -> None:
        """Raises KafkaError(INVALID_RECORD) if the records are incomplete, and InvalidRecords if some break the topic's
        rules."""
        self._last = True
        try:
            self.feed(b"")
        except IndexError:
            raise self._short() from None
        if self.invalid_count:
            text = "; ".join(f"record {index}: {message}" for index, message in self.errors[:3])
            raise InvalidRecords(self._code, f"{self.invalid_count} records are rejected: {text}", self.errors)

    def _go(self, data: bytes) -> int:
        """Validates all whole fields, and returns the position of the bytes to keep for the next piece."""
        size = len(data)
        while True:
            at = self._behind - self._at
            if at >= size:
                if self._last and (at > size or self._next != HEAD or self.index < self._count):
                    raise self._short()
                return size
            if size - at < LONGEST_FIELDS and not self._last:
                return at
            if self._next == HEAD:
                if self.index >= self._count:
                    raise invalid(f"bytes are left after the batch's {self._count} records")
                at = self._head(data, at)
            else:
                at = self._field(data, at)
            self._behind = self._at + at
            if self._behind > self._end:
                raise invalid(f"record {self.index} has a field that ends beyond the record")
            if self._next == HEAD:
                self._close_record()

    def _short(self) -> KafkaError:
        return invalid(f"the records end inside record {self.index} of {self._count}")

    def _close_record(self) -> None:
        if self._behind != self._end:
            raise invalid(f"record {self.index} ends {self._end - self._behind} bytes before its announced end")
        self.index += 1

    def _head(self, data: bytes, at: int) -> int:
        """Reads the fields up to the key's length, and returns the position after the key."""
        length, at = _varint(data, at)
        if length < 0:
            raise invalid(f"record {self.index} has a length of {length}")
        if length > self._rules.largest:
            raise too_large(length, self._rules.largest)
        self._end = self._at + at + length
        delta, at = _varlong(data, at + 1)
        offset_delta, at = _varint(data, at)
        key_length, at = _varint(data, at)
        if offset_delta != self.index:
            self.consecutive = False
        timestamp = self._stamp
        if timestamp is None:
            timestamp = (self._first + delta + (1 << 63) & (1 << 64) - 1) - (1 << 63)
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self._check(timestamp, offset_delta, key_length < 0)
        self._next = VALUE
        return at + max(key_length, 0)

    def _field(self, data: bytes, at: int) -> int:
        """Reads a value, the count of headers, or a header's key or value, and returns the position after it."""
        length, at = _varint(data, at)
        if self._next == VALUE:
            self._next = HEADERS
        elif self._next == HEADERS:
            if length < 0 or length > self._end - self._at - at:
                raise invalid(f"record {self.index} has {length} headers")
            self._headers = length
            self._next = HEADER_KEY if length else HEAD
            return at
        elif self._next == HEADER_KEY:
            if length < 0:
                raise invalid(f"record {self.index} has a header key of length {length}")
            self._next = HEADER_VALUE
        else:
            self._headers -= 1
            self._next = HEADER_KEY if self._headers else HEAD
        return at + max(length, 0)

    def _check(self, timestamp: int, offset_delta: int, key_is_null: bool) -> None:
        rules = self._rules
        if rules.keys and key_is_null:
            self._refuse(NO_KEY)
        elif rules.times and timestamp != -1:
            if not rules.earliest <= timestamp <= rules.latest:
                self._code = ErrorCode.INVALID_TIMESTAMP
                self._refuse(
                    f"Timestamp {timestamp} of message with offset {self._offset + offset_delta} is out of range. The "
                    f"timestamp should be within [{rules.earliest}, {rules.latest}]"
                )
        elif rules.unstamped:
            self._code = ErrorCode.INVALID_TIMESTAMP
            self._refuse("Producer should not set timestamp type to LogAppendTime.")

    def _refuse(self, message: str) -> None:
        self.invalid_count += 1
        if self.invalid_count <= MAX_LISTED_ERRORS:
            self.errors.append((self.index, message))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < ONE_BYTE:
        return (byte >> 1) ^ -(byte & 1), at + 1
    try:
        return decode_varint(data, at)
    except KafkaError as error:
        raise invalid(error.message) from None


def _varlong(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < ONE_BYTE:
        return (byte >> 1) ^ -(byte & 1), at + 1
    try:
        return decode_varlong(data, at)
    except KafkaError as error:
        raise invalid(error.message) from None


def invalid(message: str | None) -> KafkaError:
    """Returns the error for malformed records."""
    return KafkaError(ErrorCode.INVALID_RECORD, message)
