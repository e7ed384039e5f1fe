"""Scans the records of a share partition: when and to whom they may be delivered.

Only groups that ask for it have their records scanned (coordinator/share_partition/holdback.py): for a header that has
a time, and for their keys. Many records, or compressed ones, are read in a thread; the fetch that needs them waits as
for an append.

A time is spelled in decimal digits, `1500`: so many ms after the record's timestamp; or `@1767225600000`: the ms since
1970 at which it is. Anything else is no time. A longer delay than allowed becomes the longest that is.
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
"""More than these are read in a thread: the event loop is kept for a millisecond or two at most."""

QUIET_MS: Final = 60_000
"""One line in the log in this time, for all invalid values of a share partition."""

log = get_logger("broker.share")

Range = tuple[int, int]


class Read(NamedTuple):
    """The keys and times of a read, and the number of values that were invalid."""

    facts: Facts
    refused: int
    example: str


class Learning:
    """The scan of one share partition's records."""

    def __init__(
        self, name: str, engine: SharePartition, wake: Callable[[], None], clock: Clock, workers: Workers
    ) -> None:
        """`workers` read large batches."""
        self._name = name
        self._engine = engine
        self._wake = wake
        self._clock = clock
        self._workers = workers
        self._reading: asyncio.Task[None] | None = None
        self.refused = 0
        """How many values of the header were invalid."""
        self._told_ms = -QUIET_MS
        self._told = 0

    def obey(self, config: GroupConfig) -> None:
        """Takes over the group's options."""
        header = config.odradek_share_delivery_delay_header
        max_ms = config.odradek_share_delivery_delay_max_ms if header else 0
        hold_back(self._engine, HoldbackRules(header, max_ms, config.odradek_share_order_by_key))

    def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    def place(self, member_id: str) -> int | None:
        """Returns the offset of a member's fetch; None while there is nothing for it."""
        holdback = self._holdback()
        offset = holdback.next_offset(self._engine, member_id)
        if self._reading is not None and offset == holdback.frontier(self._engine):
            return None
        return offset

    @property
    def awaits_log(self) -> bool:
        """True when a longer log allows a further scan."""
        return self._reading is None and self._engine.is_active and self._holdback().can_learn(self._engine)

    def _holdback(self) -> Holdback:
        return holdback_of(self._engine)

    def learn(self, view: memoryview, offset: int, batches: Sequence[FetchedBatch], aborted: Sequence[Range]) -> None:
        """Scans the bytes read from `offset` on, at once or later."""
        holdback, now_ms = self._holdback(), self._clock.now_ms()
        wanted = holdback.learnable(self._engine, batches)
        if not wanted or self._reading is not None:
            return
        read = partial(read_facts, view, offset, wanted, holdback.rules, now_ms)
        if is_little(view, wanted):
            self._take(holdback, read(), aborted, now_ms)
        else:
            self._reading = asyncio.ensure_future(self._later(holdback, read, aborted))

    async def _later(self, holdback: Holdback, read: Callable[[], Read], aborted: Sequence[Range]) -> None:
        try:
            found = await self._workers.call(read)
        finally:
            self._reading = None
        if self._engine.is_active and self._engine.holdback is holdback:
            self._take(holdback, found, aborted, self._clock.now_ms())
        self._wake()

    def _take(self, holdback: Holdback, read: Read, aborted: Sequence[Range], now_ms: int) -> None:
        holdback.learn(self._engine, read.facts, now_ms)
        for first, last in aborted:
            archive(self._engine, first, min(last, read.facts.last), FREE, counts=True)
        if aborted:
            self._engine.advance()
        if read.refused:
            self.refused += read.refused
            if now_ms - self._told_ms >= QUIET_MS:
                log.warning(
                    "delivery delay not understood", partition=self._name, header=holdback.rules.delay_header,
                    records=self.refused - self._told, value=read.example,
                )  # fmt: skip
                self._told_ms, self._told = now_ms, self.refused


def is_little(view: memoryview, batches: Sequence[FetchedBatch]) -> bool:
    """True when the batches are read in no time."""
    records = compressed = plain = 0
    for each in batches:
        header = batch.read_header(view, each.position)
        records += header.records_count
        if header.attributes & batch.COMPRESSION_MASK:
            compressed += header.batch_length
        plain += header.batch_length
    return records <= FEW_RECORDS and compressed <= FEW_COMPRESSED_BYTES and plain <= FEW_BYTES


def read_facts(
    view: memoryview, offset: int, batches: Sequence[FetchedBatch], rules: HoldbackRules, now_ms: int
) -> Read:
    """Returns keys and times of the batches' records, up to each one's last offset as it is given."""
    keys: dict[int, int] = {}
    times: dict[int, int] = {}
    refused, example = 0, ""
    for each in batches:
        for record in records_of(view, each):
            if rules.by_key and record.key is not None:
                keys[record.offset] = hash(record.key)  # two keys that share a number are as one: safe, if slower
            value = header_of(record, rules.delay_header) if record.headers and rules.delay_header else NO_VALUE
            if value is NO_VALUE:
                continue
            time_ms = due_ms(value, record.timestamp, rules.delay_max_ms, now_ms)
            if time_ms is not None:
                times[record.offset] = time_ms
            else:
                refused, example = refused + 1, repr(value)[:80]
    places = [(each.first, each.last) for each in batches]
    return Read(Facts(offset, batches[-1].last, places, keys, times), refused, example)


def records_of(view: memoryview, fetched: FetchedBatch) -> Iterator[Record]:
    """Yields a batch's records, but unreadable ones, which are the consumer's to reject."""
    header = batch.read_header(view, fetched.position)
    if header.is_control:
        return
    try:
        for record in read_records(view, fetched.position, header):
            if record.offset > fetched.last:
                return
            yield record
    except KafkaError as error:
        log.warning("records cannot be read", offset=fetched.first, reason=str(error))


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
