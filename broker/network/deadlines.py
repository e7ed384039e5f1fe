"""Deadlines that are all as far off when they are set: a row in the order in which they came, and one timer for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from broker.clock import Clock, Timer

T = TypeVar("T")


class Deadlines(Generic[T]):
    """The things that wait for their deadlines, each in its place of the row."""

    __slots__ = ("_clock", "_deadlines_ms", "_pass_one", "_timer", "_wait_ms")

    def __init__(self, clock: Clock, wait_ms: int, pass_one: Callable[[T], None]) -> None:
        """`pass_one` is called with each whose deadline has passed, and which is in the row no more; each waits for
        `wait_ms`, 1 or more."""
        self._clock = clock
        self._wait_ms = wait_ms
        self._pass_one = pass_one
        self._deadlines_ms: OrderedDict[T, int] = OrderedDict()
        """The longest waiting first."""
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._deadlines_ms)

    def add(self, waiting: T) -> None:
        """Adds one that is not in the row: its time begins."""
        self._deadlines_ms[waiting] = self._clock.monotonic_ms() + self._wait_ms
        if self._timer is None:
            self._arm()

    def discard(self, waiting: T) -> bool:
        """Takes one out of the row; False where it is not there."""
        return self._deadlines_ms.pop(waiting, None) is not None

    def pop(self) -> T:
        """Takes out the one that has waited longest. Raises KeyError where there is none."""
        waiting, _ = self._deadlines_ms.popitem(last=False)
        return waiting

    def _first_ms(self) -> int:
        return next(iter(self._deadlines_ms.values()))

    def _arm(self) -> None:
        self._timer = self._clock.call_after(max(self._first_ms() - self._clock.monotonic_ms(), 1), self._ring)

    def _ring(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        try:
            while self._deadlines_ms and self._first_ms() <= now_ms:
                self._pass_one(self.pop())
        finally:  # a fault over one keeps the others from nothing but this turn
            if self._deadlines_ms and self._timer is None:
                self._arm()
