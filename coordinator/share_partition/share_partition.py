"""SharePartition: one share group's view of one partition, on the broker that leads it.

It has no clock, no log and no coordinator: it is told the time and what was read, and gives back what was acquired and
what is to be written. The owner writes a `Change` and says by `complete` how that went.

                start offset                    end offset
    … terminal ──────┬──────────────┬──────────────┬─────── not yet read …
                     │ acknowledged │ acquired     │ available, released …
    runs of records in the states of states.py; at most Limits.max_in_flight_records from start to end

Source: kafka.server.share.SharePartition of Apache Kafka 4.3 (KIP-932, KIP-1206, KIP-1222, KIP-1226).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from coordinator.share.batches import StateBatch
from coordinator.share_partition.cache import Cache, InFlightBatch
from coordinator.share_partition.request import Acquired, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Change, Limits, Run
from coordinator.share_partition.states import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    FREE,
    LIFE,
    STORED,
    TERMINAL,
    Lifecycle,
    RecordState,
)
from protocol.errors import ErrorCode, KafkaError

NO_DEADLINE: Final = 1 << 62


class Gap(NamedTuple):
    """After loading: offsets from `start` on may be missing between the batches that were stored, as long as nothing
    beyond `end` was acquired."""

    start: int
    end: int


class Acquirer(Protocol):
    """Acquires records in place of acquire.py."""

    def acquire(
        self,
        partition: SharePartition,
        request: AcquireRequest,
        fetch_offset: int,
        fetched: Sequence[FetchedBatch],
        now_ms: int,
    ) -> list[Acquired]:
        """As `acquire.acquire`, for a partition that is active and a request that has room."""
        ...


class SharePartition:
    """The records in flight, and where the next are acquired. Its modules acquire, acknowledge and release have the
    rules."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.lifecycle = Lifecycle.EMPTY
        self.cache = Cache()
        self.start_offset = 0
        """Everything below it is done with (SPSO)."""
        self.end_offset = 0
        """The last offset in flight (SPEO); the start offset when there is none."""
        self.looks_back = False
        """Something before the end may be available: the next fetch offset must be looked for."""
        self.gap: Gap | None = None
        self.delivery_complete_count = 0
        """Records from the start offset on that are in a terminal state (KIP-1226)."""
        self.rejected: set[int] = set()
        """Records that wait for the dead-letter queue because of a rejection, though it was their last delivery."""
        self.next_lock_ms = NO_DEADLINE
        """When to call `expire`, or a little earlier."""
        self.holdback: Acquirer | None = None
        """Holds records back by their time or their key (holdback.py), if the group has options for that."""

    def __repr__(self) -> str:
        return f"SharePartition({self.lifecycle.value} {self.start_offset}-{self.end_offset} {self.cache.batches})"

    # Life.

    def enter(self, lifecycle: Lifecycle) -> None:
        """Into another state of life; an assertion error where that may not follow."""
        assert lifecycle in LIFE[self.lifecycle], f"{self.lifecycle} is not followed by {lifecycle}"
        self.lifecycle = lifecycle

    def fence(self) -> None:
        """Another leader, or another beginning, has taken over."""
        self.lifecycle = Lifecycle.FENCED

    def load(self, start_offset: int, batches: Iterable[StateBatch]) -> None:
        """Takes over what was stored. Raises UNKNOWN_SERVER_ERROR for what cannot have been; the partition has
        failed then."""
        self.start_offset = start_offset
        gap_start = None
        expected = start_offset
        for batch in batches:
            is_range = start_offset <= batch.first_offset <= batch.last_offset
            if not is_range or batch.delivery_state not in STORED:
                self.enter(Lifecycle.FAILED)
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{batch} is no batch of a share partition")
            if gap_start is None and batch.first_offset > expected:
                gap_start = expected
            expected = batch.last_offset + 1
            self._load_batch(batch)
        self.end_offset = start_offset
        if self.cache.batches:
            self.looks_back = True
            self.end_offset = self.cache.last_offset
            self.gap = None if gap_start is None else Gap(gap_start, self.end_offset)
            self.advance()
        self.enter(Lifecycle.ACTIVE)

    def _load_batch(self, batch: StateBatch) -> None:
        """Leases end with the leader that gave them."""
        state = RecordState(batch.delivery_state)
        state = AVAILABLE if state is ACQUIRED else state
        run = Run(batch.first_offset, batch.last_offset, state, batch.delivery_count)
        self.cache.add(InFlightBatch(run))
        if state in TERMINAL:
            self.delivery_complete_count += run.size

    @property
    def is_active(self) -> bool:
        return self.lifecycle is Lifecycle.ACTIVE

    @property
    def has_gap(self) -> bool:
        return self.gap is not None and self.gap.end == self.end_offset

    # What to read next.

    @property
    def in_flight_count(self) -> int:
        """Offsets from start to end, whatever their state: the room that they take."""
        return self.end_offset - self.start_offset + 1 if self.cache.batches else 0

    @property
    def can_acquire(self) -> bool:
        """Whether a fetch may find something, as far as this is about room."""
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self.in_flight_count < self.limits.max_in_flight_records

    @property
    def is_drained(self) -> bool:
        """Nothing is in flight at or beyond the start offset."""
        return not self.cache.batches or self.start_offset > self.cache.last_offset

    def next_fetch_offset(self) -> int:
        """Where to read: the first record that is available again, else what follows the end."""
        if self.is_drained:
            self.looks_back = False
            return self.end_offset
        if self.looks_back:
            available = self._first_available()
            if available is not None:
                return available
            self.looks_back = False
        return self.end_offset + 1

    def _first_available(self) -> int | None:
        gap_start = self.gap.start if self.gap is not None and self.has_gap else None
        for batch in self.cache:
            if gap_start is not None:
                if batch.first > gap_start:
                    return gap_start
                gap_start = max(batch.last + 1, gap_start)
            for run in batch.runs:
                if run.can_be_acquired and run.last >= self.start_offset:
                    return max(run.first, self.start_offset)
        return None

    def close_gap(self, offset: int) -> None:
        """Everything below `offset` was looked at."""
        if self.gap is None:
            return
        floor = self.cache.floor(offset)
        if floor is not None:
            offset = max(offset, floor.last + 1)
        is_left = self.gap.end == self.end_offset and offset <= self.gap.end
        self.gap = Gap(offset, self.gap.end) if is_left else None

    # Written, or not.

    def complete(self, change: Change, is_written: bool, now_ms: int) -> bool:
        """The change is durable, or is not to be; whether a fetch that waits should look again."""
        for first, last in change.ranges:
            for batch in self.cache.overlapping(first, last):
                self._complete_batch(batch, change, is_written, now_ms)
        if not change.batches:
            return False
        return self.advance() or self.looks_back or self.holdback is not None

    def _complete_batch(self, batch: InFlightBatch, change: Change, is_written: bool, now_ms: int) -> None:
        for run in batch.runs:
            if run.change is not change:
                continue
            if is_written:
                run.commit()
                self.delay(run, now_ms)
            else:
                if run.state in TERMINAL:
                    self.delivery_complete_count -= self.from_start(run)
                run.undo(self.limits, now_ms)
                if run.state in TERMINAL:
                    self.delivery_complete_count += self.from_start(run)
                elif run.state is ACQUIRED:
                    self.next_lock_ms = min(self.next_lock_ms, run.lock_until_ms)
            if run.state in FREE:
                self.looks_back = True
                if run.last < self.start_offset:
                    run.archive()
        batch.tidy()

    def delay(self, run: Run, now_ms: int) -> None:
        """Records that were let go are not offered again at once, if the group wants that."""
        backoff_ms = self.limits.redelivery_backoff_ms
        if backoff_ms and run.state is AVAILABLE:
            pause_ms = min(backoff_ms << min(run.delivery_count - 1, 30), self.limits.redelivery_backoff_max_ms)
            run.delay(now_ms + pause_ms)
            self.next_lock_ms = min(self.next_lock_ms, run.lock_until_ms)

    def from_start(self, run: Run) -> int:
        """How many of a run's records are at or beyond the start offset."""
        return max(run.last - max(self.start_offset, run.first) + 1, 0)

    def seal(self, change: Change) -> Change:
        """The change is complete: with the offsets that are written beside it."""
        change.start_offset = self.start_offset
        change.delivery_complete_count = self.delivery_complete_count
        return change

    def advance(self) -> bool:
        """Moves the start offset over what is done with, which leaves the cache, and over what is not there; whether
        it moved."""
        skipped = self._skip_hole()
        return self._pass_done() or skipped

    def _skip_hole(self) -> bool:
        """Moves the start offset over offsets before the first batch that are in no gap: the log does not have them."""
        if not self.cache.batches:
            return False
        target = self.cache.firsts[0]
        if self.gap is not None and self.has_gap:
            target = min(target, self.gap.start)
        if self.start_offset >= target:
            return False
        self.start_offset = target
        return True

    def _pass_done(self) -> bool:
        if not self._can_move():
            return False
        done, counted = self._last_done()
        if done is None:
            return False
        batches = self.cache.batches
        if done == self.cache.last_offset:
            self.start_offset = self.end_offset = max(done + 1, self.start_offset)
            self.cache.clear()
            self.delivery_complete_count = 0
            return True
        finished = 0
        while batches[finished].last <= done:
            finished += 1
        if finished and batches[finished - 1].last == done:
            following = batches[finished].first
            if self.gap is not None and self.has_gap:
                following = min(self.gap.start, following)
            self.start_offset = max(following, self.start_offset)
        else:
            self.start_offset = max(done + 1, self.start_offset)
        self.delivery_complete_count -= counted
        self.cache.drop_first(finished)
        self._forget_passed()
        return True

    def _forget_passed(self) -> None:
        """Of the first batch, what is done with and below the start offset: it is not asked for any more."""
        if not self.cache.batches:
            return
        runs = self.cache.batches[0].runs
        passed = 0
        while passed < len(runs) - 1 and runs[passed].last < self.start_offset and runs[passed].state in TERMINAL:
            passed += 1
        if passed:
            runs[0] = Run(runs[0].first, runs[passed - 1].last, ARCHIVED, 0)
            del runs[1:passed]

    def _can_move(self) -> bool:
        """Whether the record at the start offset is done with."""
        batch = self.cache.floor(self.start_offset)
        if batch is None:
            return False
        run = next((run for run in batch.runs if run.last >= self.start_offset), batch.runs[-1])
        return run.change is None and run.state in TERMINAL

    def _last_done(self) -> tuple[int | None, int]:
        """The last offset that all before it are done with, and how many of those the count has."""
        done: int | None = None
        counted = 0
        for batch in self.cache:
            if self.gap is not None and self.has_gap and batch.last >= self.gap.start:
                return done, counted
            for run in batch.runs:
                if run.change is not None or run.state not in TERMINAL:
                    return done, counted
                done = run.last
                counted += self.from_start(run)
        return done, counted

    # Dead letters.

    def to_bury(self) -> list[Run]:
        """Records that wait to be written to the dead-letter queue."""
        return [run for batch in self.cache for run in batch.runs if run.state is ARCHIVING and run.change is None]
