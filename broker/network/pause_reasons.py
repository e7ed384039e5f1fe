"""The pause reasons of a connection: bits of one set."""

from __future__ import annotations

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
"""The first part of its next request fills its buffer, which gets no more memory, because earlier requests are in
flight or memory is short."""
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
