"""The states of a transactional id, and which may follow which.

Source: org.apache.kafka.coordinator.transaction.TransactionState.
"""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """As `__transaction_state` numbers them; `text` is what the admin APIs tell."""

    text: str

    def __new__(cls, number: int, text: str) -> State:
        self = int.__new__(cls, number)
        self._value_ = number
        self.text = text
        return self

    EMPTY = 0, "Empty"
    """A producer, and no transaction of it yet."""
    ONGOING = 1, "Ongoing"
    PREPARE_COMMIT = 2, "PrepareCommit"
    """It will be committed, whatever happens: markers are on their way."""
    PREPARE_ABORT = 3, "PrepareAbort"
    COMPLETE_COMMIT = 4, "CompleteCommit"
    """Every partition has its marker."""
    COMPLETE_ABORT = 5, "CompleteAbort"
    DEAD = 6, "Dead"
    """Expired: what is left is the tombstone."""
    PREPARE_EPOCH_FENCE = 7, "PrepareEpochFence"
    """A newer producer, or a timeout, shuts this one out. It turns into an abort at once and is never written."""


BY_NUMBER = {int(state): state for state in State}
BY_TEXT = {state.text: state for state in State}

FOLLOWS: dict[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}),
    State.ONGOING: frozenset({State.ONGOING, State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}),
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    State.PREPARE_ABORT: frozenset(
        {State.ONGOING, State.PREPARE_EPOCH_FENCE, State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}
    ),
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}),
    State.PREPARE_EPOCH_FENCE: frozenset({State.ONGOING}),
}
"""A state, and those that it may come after."""

AT_REST = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
"""No transaction is open: a new one may begin, and the id may expire."""

ENDING = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
"""Decided, and markers still to be written."""
