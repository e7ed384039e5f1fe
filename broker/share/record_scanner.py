"""Scans the records of a share partition for the keys and delivery times by which they are held back.

Only groups with these options have their records scanned (coordinator/share_partition/holdback.py). A thread reads
compressed records, or many records; the fetch that needs them waits as for an append.

A delivery time is a header of decimal digits: `1500` is in ms after the record's timestamp, `@1767225600000` is a time
in ms since 1970. Any other value is invalid. A delay above the limit is reduced to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from broker.clock import Clock
from broker.logging import get_logger
from broker.workers import Workers
from coordinator.group.config import GroupConfig
from coordinator.share_partition.expiry import archive
from coordinator.share_partition.holdback import Facts, Holdback, HoldbackRules, hold_back, holdback_of
from coordinator.share_partition.request import FetchedBatch
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import FREE
from protocol.errors import KafkaError
from protocol.records import batch
from protocol.records.record import Record, read_records

MOST_DIGITS: Final = 18
AT: Final = b"@"
FEW_BYTES: Final = 1 << 16
FEW_COMPRESSED_BYTES: Final = 1 << 13
FEW_RECORDS: Final = 500
"""Maximum number of records that are read on the event loop, which takes a millisecond or two. A thread reads more."""

QUIET_MS: Final = 60_000
"""Minimum time between two log lines about invalid values of one share partition."""

logger = get_logger(__name__)

Range = tuple[int, int]


class Scanned(NamedTuple):
    """The keys and times of scanned records, and the invalid header values among them."""

    facts: Facts
    invalid_count: int
    example: str
    """An invalid value, for the log line."""


class RecordScanner:
    """Scans the records of one share partition."""

    def __init__(
        self, name: str, machine: SharePartition, wake: Callable[[], None], clock: Clock, workers: Workers
    ) -> None:
        """`workers` read large batches."""
        self._name = name
        self._machine = machine
        self._wake = wake
        self._clock = clock
        self._workers = workers
        self._task: asyncio.Task[None] | None = None
        """The task that awaits the scanning thread; None without a scan."""
        self.invalid_count = 0
        """The number of invalid header values."""
        self._logged_ms = -QUIET_MS
        self._logged_count = 0

    def configure(self, config: GroupConfig) -> None:
        """Applies the group's options."""
        header = config.odradek_share_delivery_delay_header
        max_ms = config.odradek_share_delivery_delay_max_ms if header else 0
        hold_back(self._machine, HoldbackRules(header, max_ms, config.odradek_share_order_by_key))

    def stop(self) -> None:
        """Cancels a scan in progress."""
        if self._task is not None:
            self._task.cancel()

    def fetch_offset(self, member_id: str) -> int | None:
        """Returns the offset from which a member's fetch reads; None if no record is available to it."""
        holdback = self._holdback()
        offset = holdback.next_offset(self._machine, member_id)
        if self._task is not None and offset == holdback.frontier(self._machine):
            return None
        return offset

    @property
    def awaits_log(self) -> bool:
        """True if scanning would continue with more records in the log."""
        return self._task is None and self._machine.is_active and self._holdback().can_learn(self._machine)

    def _holdback(self) -> Holdback:
        return holdback_of(self._machine)

    def scan(self, view: memoryview, offset: int, batches: Sequence[FetchedBatch], aborted: Sequence[Range]) -> None:
        """Scans the bytes read from `offset` on, on the event loop or in a thread."""
        holdback, now_ms = self._holdback(), self._clock.now_ms()
        unscanned = holdback.learnable(self._machine, batches)
        if not unscanned or self._task is not None:
            return
        read = partial(read_facts, view, offset, unscanned, holdback.rules, now_ms)
        if is_small(view, unscanned):
            self._apply(holdback, read(), aborted, now_ms)
        else:
            self._task = asyncio.ensure_future(self._scan_in_thread(holdback, read, aborted))

    async def _scan_in_thread(self, holdback: Holdback, read: Callable[[], Scanned], aborted: Sequence[Range]) -> None:
        try:
            scanned = await self._workers.call(read)
        finally:
            self._task = None
        if self._machine.is_active and self._machine.holdback is holdback:
            self._apply(holdback, scanned, aborted, self._clock.now_ms())
        self._wake()

    def _apply(self, holdback: Holdback, scanned: Scanned, aborted: Sequence[Range], now_ms: int) -> None:
        holdback.learn(self._machine, scanned.facts, now_ms)
        for first, last in aborted:
            archive(self._machine, first, min(last, scanned.facts.last), FREE)
        if aborted:
            self._machine.advance()
        if scanned.invalid_count:
            self.invalid_count += scanned.invalid_count
            if now_ms - self._logged_ms >= QUIET_MS:
                logger.warning(
                    "delivery delay header is invalid", partition=self._name, header=holdback.rules.delay_header,
                    records=self.invalid_count - self._logged_count, value=scanned.example,
                )  # fmt: skip
                self._logged_ms, self._logged_count = now_ms, self.invalid_count


def is_small(view: memoryview, batches: Sequence[FetchedBatch]) -> bool:
    """True if the batches can be read on the event loop."""
    records = compressed = plain = 0
    for fetched in batches:
        header = batch.read_header(view, fetched.position)
        records += header.records_count
        if header.attributes & batch.COMPRESSION_MASK:
            compressed += header.batch_length
        plain += header.batch_length
    return records <= FEW_RECORDS and compressed <= FEW_COMPRESSED_BYTES and plain <= FEW_BYTES


def read_facts(
    view: memoryview, offset: int, batches: Sequence[FetchedBatch], rules: HoldbackRules, now_ms: int
) -> Scanned:
    """Returns keys and delivery times of the batches' records, up to the `last` offset of each batch."""
    keys: dict[int, int] = {}
    times: dict[int, int] = {}
    invalid_count, example = 0, ""
    for fetched in batches:
        for record in records_of(view, fetched):
            if rules.by_key and record.key is not None:
                keys[record.offset] = hash(record.key)  # keys with the same hash count as one: safe, but slower
            value = header_of(record, rules.delay_header) if record.headers and rules.delay_header else NO_VALUE
            if value is NO_VALUE:
                continue
            time_ms = due_ms(value, record.timestamp, rules.delay_max_ms, now_ms)
            if time_ms is not None:
                times[record.offset] = time_ms
            else:
                invalid_count, example = invalid_count + 1, repr(value)[:80]
    ranges = [(fetched.first, fetched.last) for fetched in batches]
    return Scanned(Facts(offset, batches[-1].last, ranges, keys, times), invalid_count, example)


def records_of(view: memoryview, fetched: FetchedBatch) -> Iterator[Record]:
    """Yields a batch's records up to the first unreadable record, which is left to consumers to reject."""
    header = batch.read_header(view, fetched.position)
    if header.is_control:
        return
    try:
        for record in read_records(view, fetched.position, header):
            if record.offset > fetched.last:
                return
            yield record
    except KafkaError as error:
        logger.warning("records cannot be read", offset=fetched.first, reason=str(error))


NO_VALUE: Final = b"\0no such header"


def header_of(record: Record, name: str) -> bytes | None:
    """Returns the value of the last header of that name, which may be null; NO_VALUE if there is none."""
    for key, value in reversed(record.headers):
        if key == name:
            return value
    return NO_VALUE


def due_ms(value: bytes | None, timestamp_ms: int, max_ms: int, now_ms: int) -> int | None:
    """Returns the time at which a record may be delivered, by its header; None if the header is invalid."""
    if value is None:
        return None
    is_absolute = value[:1] == AT
    digits = value[1:] if is_absolute else value
    if not digits.isdigit() or len(digits) > MOST_DIGITS:
        return None
    time_ms = int(digits) if is_absolute else timestamp_ms + int(digits)
    return min(time_ms, timestamp_ms + max_ms, now_ms + max_ms)
