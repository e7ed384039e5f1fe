"""The states of a transactional id, and the states that may follow each other.

Source: org.apache.kafka.coordinator.transaction.TransactionState.
"""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """The state, numbered as in `__transaction_state`; `text` is its name in the admin APIs."""

    text: str

    def __new__(cls, number: int, text: str) -> State:
        self = int.__new__(cls, number)
        self._value_ = number
        self.text = text
        return self

    EMPTY = 0, "Empty"
    """The id has a producer, and no transaction yet."""
    ONGOING = 1, "Ongoing"
    PREPARE_COMMIT = 2, "PrepareCommit"
    """The transaction will be committed in any case: its markers are being written."""
    PREPARE_ABORT = 3, "PrepareAbort"
    COMPLETE_COMMIT = 4, "CompleteCommit"
    """Every partition has its marker."""
    COMPLETE_ABORT = 5, "CompleteAbort"
    DEAD = 6, "Dead"
    """The id has expired: only its tombstone is left."""
    PREPARE_EPOCH_FENCE = 7, "PrepareEpochFence"
    """A newer producer, or a timeout, fences this producer. The state becomes an abort at once and is never written."""


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
"""The states that may precede each state."""

AT_REST = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
"""The states without an open transaction: a new one may begin, and the id may expire."""

ENDING = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
"""The states of a decided transaction that still needs markers."""
