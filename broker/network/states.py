"""The state of a client's connection, without I/O: its phase, and the reasons for which it is not read or answered.

The phases follow each other by a table. The reasons are bits of one set, because several can hold at once; the two that
belong to a phase are set by it alone.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

ANSWER: Final = 1
"""Its request is in flight: parked or running."""
PEER: Final = 2
"""The peer must read answers first."""
PLACE: Final = 4
"""The connection isn't admitted yet."""
TURN: Final = 8
"""Requests that were read before are answered first."""
ROOM: Final = 16
"""The first part of its next request fills its buffer, and gets no more memory: because requests before it are in
flight, or because memory is short."""
ENDED: Final = 32
"""The connection is closing or closed."""
THROTTLED: Final = 64
"""Its client is beyond a quota."""
COMMIT: Final = 128
"""Its Produce waits for other replicas. The next request begins behind it if it is a Produce too (in_flight.py)."""
NO_ANSWERS: Final = ANSWER | PEER | PLACE | ENDED | THROTTLED
"""The reasons for which a connection answers nothing."""
NO_READING: Final = TURN | PLACE | ROOM | THROTTLED
"""The reasons for which a connection's socket isn't read from. A connection that waits for its answer, as most do, is
read from: so the broker notices when the client closes it."""


class Phase(Enum):
    """The phases of a connection."""

    NEW = "new"
    WAITING = "waiting for a place"
    """It exceeds a limit of connections: nothing is answered until it is admitted."""
    OPEN = "open"
    LINGERING = "lingering"
    """Its client is rejected, and has a moment to read the last answer; what it sends is ignored."""
    CLOSING = "closing"
    """Nothing is read or answered, but written bytes may still be sent."""
    CLOSED = "closed"


MAY_FOLLOW: Final[dict[Phase, frozenset[Phase]]] = {
    Phase.NEW: frozenset({Phase.WAITING, Phase.OPEN, Phase.CLOSING, Phase.CLOSED}),
    Phase.WAITING: frozenset({Phase.OPEN, Phase.LINGERING, Phase.CLOSING, Phase.CLOSED}),
    Phase.OPEN: frozenset({Phase.LINGERING, Phase.CLOSING, Phase.CLOSED}),
    Phase.LINGERING: frozenset({Phase.CLOSING, Phase.CLOSED}),
    Phase.CLOSING: frozenset({Phase.CLOSING, Phase.CLOSED}),  # closing, then cut off
    Phase.CLOSED: frozenset(),
}

REASONS_OF: Final[dict[Phase, int]] = {
    Phase.NEW: 0,
    Phase.WAITING: PLACE,
    Phase.OPEN: 0,
    Phase.LINGERING: ENDED,
    Phase.CLOSING: ENDED,
    Phase.CLOSED: ENDED,
}
"""The reasons that a phase sets. ENDED is never removed: an answer, a timer, a turn or the transport that comes later
sees it and does nothing."""


class ServingState:
    """The state of one connection."""

    __slots__ = ("phase", "reasons")

    def __init__(self) -> None:
        self.phase = Phase.NEW
        self.reasons = 0
        """The pause reasons."""

    def enter(self, phase: Phase) -> None:
        """Begins a phase, which may follow the present phase."""
        assert phase in MAY_FOLLOW[self.phase], f"a connection that is {self.phase.value} cannot be {phase.value}"
        self.phase = phase
        self.reasons = self.reasons & ~PLACE | REASONS_OF[phase]

    @property
    def has_ended(self) -> bool:
        return bool(self.reasons & ENDED)

    @property
    def answers(self) -> bool:
        """True if the next request is answered now."""
        return not self.reasons & NO_ANSWERS

    @property
    def reads(self) -> bool:
        """True if the socket is read from."""
        return not self.reasons & NO_READING
