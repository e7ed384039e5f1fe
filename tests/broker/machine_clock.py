"""The machine's clock as a class that test clocks can inherit from, because `SystemClock` is compiled in a wheel."""

from __future__ import annotations

from collections.abc import Callable

from broker.clock import SystemClock, Timer


class MachineClock:
    """Uses the system's clock; a test's clock overrides a part of it."""

    _system = SystemClock()

    def now_ms(self) -> int:
        return self._system.now_ms()

    def monotonic_ms(self) -> int:
        return self._system.monotonic_ms()

    def monotonic_ns(self) -> int:
        return self._system.monotonic_ns()

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        return self._system.call_at(when_ms, then)

    def call_after(self, delay_ms: float, then: Callable[[], None]) -> Timer:
        return self._system.call_after(delay_ms, then)
