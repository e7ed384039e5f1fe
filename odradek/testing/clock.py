"""The broker's clock, which travels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odradek.testing.control import Control

MS: Final = 1000
UNITS: Final = (86_400 * MS, 3_600 * MS, 60 * MS, MS, 1)
"""Milliseconds in a day, an hour, a minute, a second, and one."""


def duration_ms(days: float, hours: float, minutes: float, seconds: float, ms: float) -> int:
    """Returns their sum. Raises ValueError where that is nothing, or less."""
    total = round(sum(unit * count for unit, count in zip(UNITS, (days, hours, minutes, seconds, ms), strict=True)))
    if total <= 0:
        raise ValueError(f"{total} ms: a clock goes forward only, by a millisecond at least")
    return total


class BrokerClock:
    """The time of a broker, or of all of a cluster. It never goes back: who lets it go far has a broker of its own."""

    def __init__(self, controls: Sequence[Control]) -> None:
        self._controls = controls

    @property
    def now_ms(self) -> int:
        """Returns milliseconds since the epoch, as the broker has them."""
        return int(self._controls[0].get("/v1/clock")["now_ms"])

    @property
    def travelled_ms(self) -> int:
        """Returns how far the broker is ahead of the machine."""
        return int(self._controls[0].get("/v1/clock")["travelled_ms"])

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """Lets so much time pass for the broker: what is due on the way, as retention, sessions, transactions and
        locks, has happened when this returns. Clients' clocks stand. Raises ValueError where no time would pass."""
        journey = {"advance_ms": duration_ms(days, hours, minutes, seconds, ms)}
        for control in self._controls:
            control.post("/v1/clock", journey)
