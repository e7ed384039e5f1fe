"""A clock that ticks when it is read, so that turns end by count."""

from __future__ import annotations

from typing import Any


class Ticking:
    """A clock that advances by a millisecond whenever it is read."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.ticks = 0

    def monotonic_ns(self) -> int:
        self.ticks += 1
        return self.ticks * 1_000_000

    def __getattr__(self, name: str) -> Any:
        return getattr(self.clock, name)
