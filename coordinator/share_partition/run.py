"""Run: consecutive records in one state, for one member, under one lock; and the change that one of them is in.

A change is begun, written, and only then committed; if the write fails, it is undone. In between, nobody else can
touch the records. Source: Kafka's InFlightState, of which a run stands for many.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator.share.batches import StateBatch
from coordinator.share_partition.states import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    DELAYED,
    MAY_BECOME,
    RecordState,
)
from protocol.errors import ErrorCode, KafkaError

NOBODY: Final = ""
NO_LOCK: Final = 0


class Limits(NamedTuple):
    """The group's options; read anew with each request, since they change."""

    max_delivery_count: int = 5
    max_in_flight_records: int = 2_000
    lock_duration_ms: int = 30_000
    renew_enabled: bool = True
    has_dead_letters: bool = False
    """Records that are given up go to a dead-letter queue first (KIP-1191)."""
    redelivery_backoff_ms: int = 0
    redelivery_backoff_max_ms: int = 60_000
    """Records that were let go are offered again after a pause, which doubles with each delivery."""


class Change:
    """Records that are to be in another state once it is written."""

    __slots__ = ("batches", "delivery_complete_count", "ranges", "start_offset")

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []
        """The ranges that are to be committed or undone, as offsets first and last."""
        self.batches: list[StateBatch] = []
        """The state batches that are to be written, with the two below."""
        self.start_offset = 0
        self.delivery_complete_count = 0

    @property
    def has_dead_letters(self) -> bool:
        """Whether some of the records are given up, and wait for the dead-letter queue."""
        return any(batch.delivery_state == ARCHIVING for batch in self.batches)

    def note(self, run: Run) -> None:
        """To be written, without a way back."""
        self.batches.append(StateBatch(run.first, run.last, int(run.state), run.delivery_count))


def given_up(limits: Limits) -> RecordState:
    """Where records go that are rejected, or were delivered too often."""
    return ARCHIVING if limits.has_dead_letters else ARCHIVED


def settled(next_state: RecordState, delivery_count: int, limits: Limits) -> RecordState:
    """The state that a record comes to of which `wanted` is said: what was delivered too often is not again."""
    if next_state is AVAILABLE and delivery_count >= limits.max_delivery_count:
        return given_up(limits)
    return next_state


class Run:
    """Offsets first to last, both included."""

    __slots__ = ("before", "change", "delivery_count", "first", "last", "lock_until_ms", "member_id", "state")

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        delivery_count: int,
        member_id: str = NOBODY,
        lock_until_ms: int = NO_LOCK,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock_until_ms = lock_until_ms
        self.change: Change | None = None
        """The change that is not yet committed."""
        self.before = (state, member_id)
        """Its state and member before that change."""

    def __repr__(self) -> str:
        return f"Run({self.first}-{self.last} {self.state.name} {self.delivery_count} {self.member_id!r})"

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def can_be_acquired(self) -> bool:
        return self.state is AVAILABLE and self.change is None

    def become(self, state: RecordState) -> None:
        """To another state for good; an assertion error where that may not follow."""
        assert state in MAY_BECOME[self.state], f"{self!r} cannot become {state.name}"
        self.state = state
        self.member_id = NOBODY
        self.lock_until_ms = NO_LOCK

    def acquire(self, member_id: str, lock_until_ms: int) -> None:
        """Delivered once more, to this member."""
        self.become(ACQUIRED)
        self.delivery_count += 1
        self.member_id = member_id
        self.lock_until_ms = lock_until_ms

    def delay(self, until_ms: int) -> None:
        """Is not offered before `until_ms`; `become` ends the delay."""
        self.become(DELAYED)
        self.lock_until_ms = until_ms

    def begin(self, state: RecordState, change: Change) -> None:
        """Into another state if the change is written. Raises INVALID_RECORD_STATE where that may not follow."""
        if state not in MAY_BECOME[self.state]:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE, f"records {self.first} to {self.last} are {self.state.name.lower()}"
            )
        self.before = (self.state, self.member_id)
        self.change = change
        self.state = state
        self.member_id = NOBODY
        change.ranges.append((self.first, self.last))
        change.note(self)

    def commit(self) -> None:
        """The change is written."""
        self.change = None
        self.lock_until_ms = NO_LOCK

    def undo(self, limits: Limits, now_ms: int) -> None:
        """The change is not written: as before, or released, if the lock has run out since."""
        self.change = None
        self.state, self.member_id = self.before
        if self.state is ACQUIRED and self.lock_until_ms <= now_ms:
            self.become(settled(AVAILABLE, self.delivery_count, limits))

    def archive(self) -> None:
        """The records are gone from the log: whatever else is under way does not matter any more."""
        self.state = ARCHIVED
        self.member_id = NOBODY
        self.lock_until_ms = NO_LOCK
        self.change = None

    def split(self, offset: int) -> Run:
        """Cuts the run in two; it keeps what is below `offset`, the new one has the rest."""
        rest = Run(offset, self.last, self.state, self.delivery_count, self.member_id, self.lock_until_ms)
        rest.change, rest.before = self.change, self.before
        self.last = offset - 1
        return rest

    def is_like(self, other: Run) -> bool:
        """Whether the two could be one."""
        return (
            self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.lock_until_ms == other.lock_until_ms
            and self.change is other.change
            and (self.change is None or self.before == other.before)
        )
