"""The reasons for a connection to wait: bits of one set."""

from __future__ import annotations

from typing import Final

ANSWER: Final = 1
"""Its request is at work: parked, or running."""
PEER: Final = 2
"""The peer has answers to take first."""
PLACE: Final = 4
"""It has not been admitted yet."""
TURN: Final = 8
"""Requests that were read before are answered first."""
ROOM: Final = 16
"""The first part of its next request fills its room, and it gets no more: because the ones before are at work, or
because memory is short."""
ENDED: Final = 32
"""It closes, or is closed."""
THROTTLED: Final = 64
"""Its client is beyond a quota."""
COMMIT: Final = 128
"""Its Produce waits for other replicas. The next one, if it is a Produce too, begins behind it (at_work.py)."""
NO_ANSWERS: Final = ANSWER | PEER | PLACE | ENDED | THROTTLED
"""While it waits for any of these it answers nothing."""
NO_READING: Final = TURN | PLACE | ROOM | THROTTLED
"""While it waits for any of these its socket is not read from. A client that waits for its answer, as most do, is: so
the broker learns when it goes."""
