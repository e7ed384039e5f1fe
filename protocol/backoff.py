"""The pause before a retry."""

from __future__ import annotations

from typing import Final, NamedTuple

MAX_DOUBLINGS: Final = 30
"""Maximum number of doublings, which reaches every maximum pause; more would only make the numbers grow."""


class Backoff(NamedTuple):
    """A pause that doubles from retry to retry up to a maximum, with jitter, so that clients that lost the same broker
    don't all come back at once (KIP-144, KIP-580).
    """

    initial_ms: int = 50
    """reconnect.backoff.ms of Kafka's clients."""
    max_ms: int = 1000
    """reconnect.backoff.max.ms of Kafka's clients."""
    jitter: float = 0.2
    """The largest share by which a pause is lengthened or shortened."""

    def delay_ms(self, failures: int, draw: float = 0.5) -> int:
        """Returns the pause after `failures` in a row; `draw` is a random number from 0 up to 1. Without it, the pause
        has no jitter."""
        if failures <= 0:
            return 0
        steady = min(self.initial_ms << min(failures - 1, MAX_DOUBLINGS), self.max_ms)
        return int(steady * (1 - self.jitter + 2 * self.jitter * draw))
