"""SharePartition: one share group's view of one partition, on the broker that leads it.

It has no clock, no log and no coordinator: calls pass in the time and the fetched batches. Acquisitions are in no
record. The engine has the share coordinator write the record of every other decision, and `complete` its changes.

                start offset                    end offset
    … terminal ──────┬──────────────┬──────────────┬─────── not yet read …
                     │ acknowledged │ acquired     │ available, released …
    runs of records in the states of states.py; at most Limits.max_in_flight_records from start to end

Source: kafka.server.share.SharePartition of Apache Kafka 4.3 (KIP-932, KIP-1206, KIP-1222, KIP-1226).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import Final, NamedTuple, Protocol

from coordinator.engine.machine import EXPIRY_RETRY_MS
from coordinator.engine.result import Result
from coordinator.share.batches import StateBatch
from coordinator.share_partition.cache import Cache, InFlightBatch, Span
from coordinator.share_partition.request import Acquired, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Limits, Run, StateRecord, settled
from coordinator.share_partition.run_index import in_order
from coordinator.share_partition.states import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    DELAYED,
    FREE,
    STORED,
    TERMINAL,
)
from protocol.errors import ErrorCode, KafkaError

PIECE: Final = 2_000
"""Maximum number of runs that one decision changes. With their write, this takes about fifteen milliseconds."""

EXPIRED_AT_ONCE: Final = 100
"""Maximum number of runs that one expiry releases; the engine calls `expire` again for the rest."""


class Gap(NamedTuple):
    """Offsets from `start` on that may be missing between the stored batches after loading, as long as nothing beyond
    `end` was acquired."""

    start: int
    end: int


class Acquirer(Protocol):
    """The interface of a holdback, which acquires records in place of acquire.py."""

    def acquire(
        self,
        partition: SharePartition,
        request: AcquireRequest,
        fetch_offset: int,
        fetched: Sequence[FetchedBatch],
        now_ms: int,
    ) -> list[Acquired]:
        """Acquires as `acquire.acquire` does, for an active partition and a request for at least one record."""
        ...


class SharePartition:
    """`coordinator.engine.machine.Machine` of one share partition: its records in flight, and the offset to acquire
    next. The modules acquire, acknowledge and expiry have the rules."""

    def __init__(self, limits: Limits, wake: Callable[[], None]) -> None:
        """`wake` is called when a lock or a delay has ended: a waiting fetch may acquire the records."""
        self.limits = limits
        """The group's options, which may change at any time."""
        self._wake = wake
        self.is_active = False
        """True from the end of loading until another leader, or a new initialization, replaces the share partition."""
        self.cache = Cache()
        self.end_offset = 0
        """The last offset in flight (SPEO); the start offset if there is none."""
        self.gap: Gap | None = None
        self.reserved: list[StateRecord] = []
        """Records whose changes are begun before they are written, because they are parts of a long acknowledgement."""
        self.rejected: set[int] = set()
        """Records that wait for the dead-letter queue because of a rejection at their last delivery."""
        self.holdback: Acquirer | None = None
        """Holds records back by their time or key (holdback.py), if the group sets options for that."""

    def __repr__(self) -> str:
        return f"SharePartition({self.start_offset}-{self.end_offset} {self.cache.batches})"

    @property
    def start_offset(self) -> int:
        """The offset below which all records are terminal (SPSO)."""
        return self.cache.index.start_offset

    @property
    def delivery_complete_count(self) -> int:
        """Terminal records from the start offset on (KIP-1226)."""
        return self.cache.index.done_count

    @property
    def has_available(self) -> bool:
        """True if records in flight can be acquired, or may be missing."""
        return bool(self.cache.index.available) or self.has_gap

    # Loading.

    def begin_at(self, start_offset: int) -> None:
        """Sets the start offset, before the stored state is loaded."""
        self.cache.move_start(start_offset)
        self.end_offset = start_offset

    def _load(self, batch: StateBatch) -> None:
        """Adds a stored batch; acquired records become available, because locks end with their leader. Raises
        UNKNOWN_SERVER_ERROR if the batch is invalid."""
        first, last, stored, delivery_count = batch
        if not self.start_offset <= first <= last or stored not in STORED:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{batch} is not a valid state batch of a share partition")
        expected = self.end_offset + 1 if self.cache else self.start_offset
        if self.gap is None and first > expected:
            self.gap = Gap(expected, expected)
        state = AVAILABLE if stored == ACQUIRED else STORED[stored]
        self.cache.add(Run(first, last, state, delivery_count))
        self.end_offset = last

    def activate(self) -> None:
        """Ends loading."""
        if self.gap is not None:
            self.gap = Gap(self.gap.start, self.end_offset)
        if self.cache:
            self.advance()
        self.is_active = True

    @property
    def has_gap(self) -> bool:
        return self.gap is not None and self.gap.end == self.end_offset

    # What to read next.

    @property
    def in_flight_count(self) -> int:
        """The number of offsets from start to end, in any state: the part of the limit in use."""
        return self.end_offset - self.start_offset + 1 if self.cache else 0

    @property
    def can_acquire(self) -> bool:
        """True if a fetch may acquire records within the limit of records in flight."""
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self.in_flight_count < self.limits.max_in_flight_records

    @property
    def is_drained(self) -> bool:
        """True if nothing is in flight at or beyond the start offset."""
        return not self.cache or self.start_offset > self.cache.last_offset

    def next_fetch_offset(self) -> int:
        """Returns the offset to read from: the first available record, or else the offset after the end."""
        if self.is_drained:
            return self.end_offset
        offset = self.end_offset + 1
        available = self.cache.index.available.least()
        if available is not None:
            offset = min(offset, max(available, self.start_offset))
        if self.gap is not None and self.has_gap:
            offset = min(offset, self.first_missing(self.gap.start))
        return offset

    def first_missing(self, offset: int) -> int:
        """Returns the first offset from `offset` on that isn't in flight."""
        for batch in self.cache.overlapping(offset, self.end_offset):
            if batch.first > offset:
                break
            offset = batch.last + 1
        return offset

    def close_gap(self, offset: int) -> None:
        """Ends the gap below `offset`, which was read."""
        if self.gap is None:
            return
        floor = self.cache.floor(offset)
        if floor is not None:
            offset = max(offset, floor.last + 1)
        is_left = self.gap.end == self.end_offset and offset <= self.gap.end
        self.gap = Gap(offset, self.gap.end) if is_left else None

    # Records.

    def apply(self, record: StateRecord) -> None:
        """Begins the changes of a decision's record, until `complete`; or loads a stored record."""
        if not self.is_active:
            for batch in record:
                self._load(batch)
        elif all(reserved is not record for reserved in self.reserved):
            self._begin(record)

    def reserve(self, record: StateRecord) -> None:
        """Begins changes whose record is written later."""
        self.reserved.append(record)
        self._begin(record)

    def renew(self, first: int, last: int, lock_until_ms: int) -> None:
        """Extends the member's lock of records in one batch until `lock_until_ms`."""
        batch = self.cache.floor(first)
        assert batch is not None
        is_whole = not batch.is_tracked and batch.is_within(first, last)
        for run in batch.runs if is_whole else batch.cut(first, last):
            run.renew(lock_until_ms)

    def _begin(self, record: StateRecord) -> None:
        for in_flight, batches in self._by_batch(record):
            if len(batches) == 1 and not in_flight.is_tracked and in_flight.is_within(*batches[0][:2]):
                changes = [(in_flight.runs.head, 0)]
            else:
                changes = in_flight.cut_by([Span(*batch[:2], at) for at, batch in enumerate(batches)])
            for run, at in changes:
                run.begin(STORED[batches[at].delivery_state], record)

    def _by_batch(self, record: StateRecord) -> Iterator[tuple[InFlightBatch, Sequence[StateBatch]]]:
        """Yields adjacent state batches of one batch in flight, with that batch."""
        start = 0
        while start < len(record):
            end, in_flight = start + 1, self.cache.floor(record[start].first_offset)
            last = -1 if in_flight is None else in_flight.last
            while end < len(record) and record[end].first_offset == record[end - 1].last_offset + 1 <= last:
                end += 1
            if in_flight is not None:
                yield in_flight, record[start:end]
            start = end

    def uncommitted(self, record: StateRecord) -> list[Run]:
        """Returns the runs whose pending change belongs to this record."""
        return [
            run
            for in_flight, batches in self._by_batch(record)
            for run in in_flight.part(batches[0].first_offset, batches[-1].last_offset)
            if run.change is record
        ]

    def complete(self, record: StateRecord, is_written: bool, now_ms: int) -> bool:
        """Completes or undoes a change whose write succeeded or failed. True if a waiting fetch should try again."""
        self.conclude(record, is_written, now_ms)
        return self.advance() or self.has_available or self.holdback is not None

    def conclude(self, record: StateRecord, is_written: bool, now_ms: int) -> None:
        """Completes or undoes a change, without moving the start offset."""
        self.reserved = [reserved for reserved in self.reserved if reserved is not record]
        runs = self.uncommitted(record)
        limits = self.limits
        for run in runs:
            if is_written:
                run.commit()
                self._delay(run, limits, now_ms)
            else:
                run.undo(limits, now_ms)
            if run.state in FREE and run.last < self.start_offset:
                run.archive()
        self.cache.join(runs)

    def _delay(self, run: Run, limits: Limits, now_ms: int) -> None:
        """Delays released records before they are offered again, if the group has a backoff."""
        backoff_ms = limits.redelivery_backoff_ms
        if backoff_ms and run.state is AVAILABLE:
            pause_ms = min(backoff_ms << min(run.delivery_count - 1, 30), limits.redelivery_backoff_max_ms)
            run.delay(now_ms + pause_ms)

    # Time.

    def expire(self, now_ms: int) -> Result[StateRecord]:
        """Releases records whose lock has expired, and ends delays that are over. Even if the write fails, the records
        become available."""
        due = self.cache.index.timed.up_to(now_ms)[:EXPIRED_AT_ONCE]
        delayed = [run for run in due if run.state is DELAYED]
        record = self.released(run for run in due if run.state is not DELAYED)
        end_locks = (partial(self.conclude, record, True, now_ms),) if record else ()
        end_delays = (partial(self.end_delays, delayed),) if delayed else ()
        return Result((record,) if record else (), (), (*end_locks, *end_delays, self._wake))

    def released(self, runs: Iterable[Run]) -> list[StateBatch]:
        """Returns the states of runs after their release: below the start offset they are archived."""
        start, limits = self.start_offset, self.limits
        record: list[StateBatch] = []
        for run in runs:
            count = run.delivery_count
            if run.first < start:
                record.append(StateBatch(run.first, min(run.last, start - 1), ARCHIVED, count))
            if run.last >= start:
                record.append(StateBatch(max(run.first, start), run.last, settled(AVAILABLE, count, limits), count))
        return record

    def end_delays(self, runs: Sequence[Run]) -> None:
        """Makes delayed records available."""
        for run in runs:
            run.become(AVAILABLE)
        self.cache.join(runs)

    def next_deadline_ms(self) -> int | None:
        return self.cache.index.timed.least()

    def expire_failed(self, error: Exception, now_ms: int) -> int:
        """Leaves the locks as they are, for the next attempt."""
        return now_ms + EXPIRY_RETRY_MS

    # The start offset.

    def advance(self) -> bool:
        """Moves the start offset over terminal records, which leave the cache, and over missing offsets. True if it
        moved."""
        skipped = self._skip_hole()
        return self._pass_done() or skipped

    def _skip_hole(self) -> bool:
        """Moves the start offset over offsets before the first batch that are in no gap: the log doesn't have them."""
        if not self.cache:
            return False
        target = self.cache.first_offset
        if self.gap is not None and self.has_gap:
            target = min(target, self.gap.start)
        if self.start_offset >= target:
            return False
        self.cache.move_start(target)
        return True

    def _pass_done(self) -> bool:
        if not self._can_move():
            return False
        done = self._last_done()
        if done is None:
            return False
        if done == self.cache.last_offset:
            self.end_offset = max(done + 1, self.start_offset)
            self.cache.clear()
            self.cache.move_start(self.end_offset)
            return True
        self.cache.move_start(max(self._following(done), self.start_offset))
        self.cache.drop_until(done)
        self._forget_passed()
        return True

    def _following(self, done: int) -> int:
        """Returns the next start offset if all records up to `done` are terminal. Skips offsets that the log doesn't
        have."""
        following = self.cache.overlapping(done + 1, self.end_offset)[0].first
        if self.gap is not None and self.has_gap:
            following = min(self.gap.start, following)
        return max(following, done + 1)

    def _forget_passed(self) -> None:
        """Joins the first batch's terminal runs below the start offset, which are no longer needed separately."""
        batch = self.cache.batches.head
        passed = list(takewhile(self._is_passed, batch.part(batch.first, self.start_offset - 1)))
        batch.forget(passed)

    def _is_passed(self, run: Run) -> bool:
        return run.last < self.start_offset and run.state in TERMINAL and run.change is None

    def _can_move(self) -> bool:
        """True if the record at the start offset is terminal."""
        batch = self.cache.floor(self.start_offset)
        if batch is None:
            return False
        run = batch.runs.floor(self.start_offset)
        return run is not None and run.change is None and run.state in TERMINAL

    def _last_done(self) -> int | None:
        """Returns the last offset up to which all records are terminal; None if there is none."""
        done: int | None = None
        for batch in self.cache:
            if self.gap is not None and self.has_gap and batch.last >= self.gap.start:
                return done
            for run in batch.runs:
                if run.change is not None or run.state not in TERMINAL:
                    return done
                done = run.last
        return done

    # Dead letters.

    def to_bury(self) -> list[Run]:
        """Returns the records that wait to be written to the dead-letter queue."""
        return in_order(self.cache.index.archiving)
