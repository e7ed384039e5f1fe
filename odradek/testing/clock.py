"""The broker's clock, which tests can advance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odradek.testing.control import Control

__tracebackhide__ = True

MS: Final = 1000
UNITS: Final = (86_400 * MS, 3_600 * MS, 60 * MS, MS, 1)
"""Milliseconds in a day, an hour, a minute, a second and a millisecond."""


def duration_ms(days: float, hours: float, minutes: float, seconds: float, ms: float) -> int:
    """Returns the sum in milliseconds. Raises ValueError if it is not positive."""
    total = round(sum(unit * count for unit, count in zip(UNITS, (days, hours, minutes, seconds, ms), strict=True)))
    if total <= 0:
        raise ValueError(f"{total} ms: a clock can only be advanced, by at least a millisecond")
    return total


class BrokerClock:
    """The clock of a broker, or of all brokers of a cluster. It never goes back, so a test that advances it far should
    use its own broker."""

    def __init__(self, controls: Sequence[Control]) -> None:
        self._controls = controls

    @property
    def now_ms(self) -> int:
        """Returns the broker's time in milliseconds since the epoch."""
        return int(self._controls[0].get("/v1/clock")["now_ms"])

    @property
    def travelled_ms(self) -> int:
        """Returns the milliseconds by which the broker is ahead of the machine."""
        return int(self._controls[0].get("/v1/clock")["travelled_ms"])

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """Advances the broker's time. When this returns, all that became due has happened: retention, and the expiry of
        sessions, transactions and locks. Clients' clocks are not changed. Raises ValueError if the time is not
        positive."""
        journey = {"advance_ms": duration_ms(days, hours, minutes, seconds, ms)}
        for control in self._controls:
            control.post("/v1/clock", journey)
