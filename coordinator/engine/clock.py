"""The clock of an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Alarm(Protocol):
    """The result of `call_at`."""

    def cancel(self) -> None: ...


class EngineClock(Protocol):
    """The time, and a timer for the whole engine."""

    def now_ms(self) -> int: ...

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Alarm: ...
