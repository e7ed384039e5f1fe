"""SharePartition: one share group's view of one partition, on the broker that leads it.

It has no clock, no log and no coordinator: calls pass in the time and the fetched batches, and return the acquired
records and the changes to write. The owner writes a `Change` and reports the result with `complete`.

                start offset                    end offset
    … terminal ──────┬──────────────┬──────────────┬─────── not yet read …
                     │ acknowledged │ acquired     │ available, released …
    runs of records in the states of states.py; at most Limits.max_in_flight_records from start to end

Source: kafka.server.share.SharePartition of Apache Kafka 4.3 (KIP-932, KIP-1206, KIP-1222, KIP-1226).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final, NamedTuple, Protocol

from coordinator.share.batches import StateBatch
from coordinator.share_partition.cache import Cache
from coordinator.share_partition.request import Acquired, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Change, Limits, Run
from coordinator.share_partition.run_index import in_order
from coordinator.share_partition.states import (
    ACQUIRED,
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
    """Offsets from `start` on that may be missing between the stored batches after loading, as long as nothing beyond
    `end` was acquired."""

    start: int
    end: int


class Acquirer(Protocol):
    """Acquires records instead of acquire.py."""

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
    """The records in flight of one share partition, and the offset to acquire next. The modules acquire, acknowledge
    and expiry have the rules."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.lifecycle = Lifecycle.EMPTY
        self.cache = Cache()
        self.end_offset = 0
        """The last offset in flight (SPEO); the start offset if there is none."""
        self.gap: Gap | None = None
        self.rejected: set[int] = set()
        """Records that wait for the dead-letter queue because of a rejection at their last delivery."""
        self.holdback: Acquirer | None = None
        """Holds records back by their time or key (holdback.py), if the group sets options for that."""

    def __repr__(self) -> str:
        return f"SharePartition({self.lifecycle.value} {self.start_offset}-{self.end_offset} {self.cache.batches})"

    @property
    def start_offset(self) -> int:
        """The offset below which all records are terminal (SPSO)."""
        return self.cache.index.start_offset

    @property
    def delivery_complete_count(self) -> int:
        """Terminal records from the start offset on (KIP-1226)."""
        return self.cache.index.done_count

    @property
    def next_lock_ms(self) -> int:
        """The time when `expire` is due."""
        due_ms = self.cache.index.timed.least()
        return NO_DEADLINE if due_ms is None else due_ms

    @property
    def has_available(self) -> bool:
        """True if records in flight can be acquired, or may be missing."""
        return bool(self.cache.index.available) or self.has_gap

    # Life.

    def enter(self, lifecycle: Lifecycle) -> None:
        """Changes the lifecycle state. Raises AssertionError if the state may not follow."""
        assert lifecycle in LIFE[self.lifecycle], f"{self.lifecycle} is not followed by {lifecycle}"
        self.lifecycle = lifecycle

    def fence(self) -> None:
        """Ends the share partition here: another leader, or a new initialization, has replaced it."""
        self.lifecycle = Lifecycle.FENCED

    def load(self, start_offset: int, batches: Iterable[StateBatch]) -> None:
        """Loads the stored state. Raises UNKNOWN_SERVER_ERROR if it is invalid; the partition has then failed."""
        self.cache.move_start(start_offset)
        gap_start = None
        expected = start_offset
        for batch in batches:
            is_range = start_offset <= batch.first_offset <= batch.last_offset
            if not is_range or batch.delivery_state not in STORED:
                self.enter(Lifecycle.FAILED)
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, f"{batch} is not a valid state batch of a share partition"
                )
            if gap_start is None and batch.first_offset > expected:
                gap_start = expected
            expected = batch.last_offset + 1
            self._load_batch(batch)
        self.end_offset = start_offset
        if self.cache:
            self.end_offset = self.cache.last_offset
            self.gap = None if gap_start is None else Gap(gap_start, self.end_offset)
            self.advance()
        self.enter(Lifecycle.ACTIVE)

    def _load_batch(self, batch: StateBatch) -> None:
        """Adds a stored batch; acquired records become available, because locks end with their leader."""
        state = RecordState(batch.delivery_state)
        state = AVAILABLE if state is ACQUIRED else state
        self.cache.add(Run(batch.first_offset, batch.last_offset, state, batch.delivery_count))

    @property
    def is_active(self) -> bool:
        return self.lifecycle is Lifecycle.ACTIVE

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

    # Written, or not.

    def complete(self, change: Change, is_written: bool, now_ms: int) -> bool:
        """Completes or undoes a change whose write succeeded or failed. True if a waiting fetch should try again."""
        runs = [run for run in change.runs if run.change is change]
        for run in runs:
            self._complete_run(run, is_written, now_ms)
        self.cache.join(runs)
        if not change.batches:
            return False
        return self.advance() or self.has_available or self.holdback is not None

    def _complete_run(self, run: Run, is_written: bool, now_ms: int) -> None:
        if is_written:
            run.commit()
            self.delay(run, now_ms)
        else:
            run.undo(self.limits, now_ms)
        if run.state in FREE and run.last < self.start_offset:
            run.archive()

    def delay(self, run: Run, now_ms: int) -> None:
        """Delays released records before they are offered again, if the group has a backoff."""
        backoff_ms = self.limits.redelivery_backoff_ms
        if backoff_ms and run.state is AVAILABLE:
            pause_ms = min(backoff_ms << min(run.delivery_count - 1, 30), self.limits.redelivery_backoff_max_ms)
            run.delay(now_ms + pause_ms)

    def seal(self, change: Change) -> Change:
        """Returns the change, complete with the offsets that are written with it."""
        change.start_offset = self.start_offset
        change.delivery_complete_count = self.delivery_complete_count
        return change

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
        """Returns the next start offset if all records up to `done` are terminal: past offsets that the log doesn't
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
