"""Run: consecutive records in one state, for one member, under one lock, perhaps in a change that isn't written yet.

A change is begun, written, and only then committed; if the write fails, it is undone. Until then, no other request can
change the records. Source: Kafka's InFlightState; a run stands for many of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from coordinator.share.batches import StateBatch
from coordinator.share_partition.states import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    DELAYED,
    MAY_BECOME,
    TERMINAL,
    RecordState,
)

NOBODY: Final = ""
NO_LOCK: Final = 0


class Limits(NamedTuple):
    """The group's options; read with each request, because they change."""

    max_delivery_count: int = 5
    max_in_flight_records: int = 2_000
    lock_duration_ms: int = 30_000
    renew_enabled: bool = True
    has_dead_letters: bool = False
    """True if rejected and undeliverable records go to a dead-letter queue first (KIP-1191)."""
    redelivery_backoff_ms: int = 0
    redelivery_backoff_max_ms: int = 60_000
    """Longest pause before released records are offered again; the pause doubles with each delivery."""


StateRecord: TypeAlias = Sequence[StateBatch]
"""A record of a share partition: the state batches that are written together. Each is a part of one run."""


def given_up(limits: Limits) -> RecordState:
    """Returns the state of records that are rejected, or were delivered too often."""
    return ARCHIVING if limits.has_dead_letters else ARCHIVED


def settled(next_state: RecordState, delivery_count: int, limits: Limits) -> RecordState:
    """Returns the state after a release or an acknowledgement: a release archives the record once the delivery limit is
    reached."""
    if next_state is AVAILABLE and delivery_count >= limits.max_delivery_count:
        return given_up(limits)
    return next_state


class Index(Protocol):
    """The index that a run updates (run_index.py)."""

    def add(self, run: Run) -> None: ...
    def remove(self, run: Run) -> None: ...
    def add_parts(self, run: Run, parts: Sequence[Run]) -> None: ...
    def remove_part(self, run: Run) -> None: ...


class Run:
    """Offsets first to last, both included. Its state is changed only by these methods, which update the index."""

    __slots__ = ("before", "change", "delivery_count", "first", "index", "last", "lock_until_ms", "member_id", "state")

    index: Index

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
        self.change: StateRecord | None = None
        """The record that changes the state and isn't yet committed."""
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

    def enter(self, index: Index) -> None:
        """Adds the run to the index of the cache that has it from now on."""
        self.index = index
        index.add(self)

    def _become(
        self,
        state: RecordState,
        member_id: str = NOBODY,
        lock_until_ms: int = NO_LOCK,
        change: StateRecord | None = None,
    ) -> None:
        self.index.remove(self)
        self.state = state
        self.member_id = member_id
        self.lock_until_ms = lock_until_ms
        self.change = change
        self.index.add(self)

    def _must_follow(self, state: RecordState) -> None:
        assert state in MAY_BECOME[self.state], f"{self!r} cannot become {state.name}"

    def become(self, state: RecordState) -> None:
        """Changes the state for good. Raises AssertionError if the state may not follow."""
        self._must_follow(state)
        self._become(state)

    def acquire(self, member_id: str, lock_until_ms: int) -> None:
        """Delivers the records once more, to this member."""
        self._must_follow(ACQUIRED)
        self.delivery_count += 1
        self._become(ACQUIRED, member_id, lock_until_ms)

    def renew(self, lock_until_ms: int) -> None:
        """Extends the member's lock until `lock_until_ms`."""
        self._become(ACQUIRED, self.member_id, lock_until_ms)

    def delay(self, until_ms: int) -> None:
        """Delays the records until `until_ms`; `become` ends the delay."""
        self._must_follow(DELAYED)
        self._become(DELAYED, lock_until_ms=until_ms)

    def begin(self, state: RecordState, change: StateRecord) -> None:
        """Begins a change, which is committed or undone later. Raises AssertionError if the state may not follow."""
        self._must_follow(state)
        self.before = (self.state, self.member_id)
        self._become(state, NOBODY, self.lock_until_ms, change)

    def commit(self) -> None:
        """Completes the change, because its record is written."""
        if self.state in TERMINAL:  # indexed like this already
            self.change, self.lock_until_ms = None, NO_LOCK
        else:
            self._become(self.state)

    def undo(self, limits: Limits, now_ms: int) -> None:
        """Undoes the change, because its record could not be written: restores the state, or releases the records if
        their lock has expired."""
        state, member_id = self.before
        self._become(state, member_id, self.lock_until_ms)
        if state is ACQUIRED and self.lock_until_ms <= now_ms:
            self.become(settled(AVAILABLE, self.delivery_count, limits))

    def archive(self) -> None:
        """Archives records that are gone from the log; a pending change no longer matters."""
        self._become(ARCHIVED)

    def split(self, offsets: Sequence[int]) -> list[Run]:
        """Cuts the run at each of the offsets, which are in order; it keeps the offsets below the first, and the
        returned runs have the rest."""
        following = (*offsets[1:], self.last + 1)
        rest = [self._part(first, next_first - 1) for first, next_first in zip(offsets, following, strict=True)]
        self.last = offsets[0] - 1
        self.index.add_parts(self, rest)
        return rest

    def _part(self, first: int, last: int) -> Run:
        """Returns a run that differs only in its offsets."""
        part = Run(first, last, self.state, self.delivery_count, self.member_id, self.lock_until_ms)
        part.change, part.before, part.index = self.change, self.before, self.index
        return part

    def absorb(self, following: Run) -> None:
        """Extends the run by the following run, which differs only in its offsets and is no longer in the batch."""
        self.index.remove_part(following)
        self.last = following.last

    def is_like(self, following: Run) -> bool:
        """True if the two can be joined: neither is in a change."""
        return (
            self.state is following.state
            and self.delivery_count == following.delivery_count
            and self.member_id == following.member_id
            and self.lock_until_ms == following.lock_until_ms
            and self.change is None
            and following.change is None
        )
