"""Deadlines that are all the same time away when they are set: a queue in order of arrival, with one timer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from broker.clock import Clock, Timer

T = TypeVar("T")


class Deadlines(Generic[T]):
    """The items that wait for their deadlines, in order of arrival."""

    __slots__ = ("_clock", "_deadlines_ms", "_expire", "_timer", "_wait_ms")

    def __init__(self, clock: Clock, wait_ms: int, expire: Callable[[T], None]) -> None:
        """Calls `expire` with each item whose deadline has passed, after the item is removed. Each item waits for
        `wait_ms`, 1 or more."""
        self._clock = clock
        self._wait_ms = wait_ms
        self._expire = expire
        self._deadlines_ms: OrderedDict[T, int] = OrderedDict()
        """The deadlines, of the longest waiting item first."""
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._deadlines_ms)

    def add(self, waiting: T) -> None:
        """Adds an item that isn't in the queue: its time begins."""
        self._deadlines_ms[waiting] = self._clock.monotonic_ms() + self._wait_ms
        if self._timer is None:
            self._arm()

    def discard(self, waiting: T) -> bool:
        """Removes an item from the queue. Returns False if it isn't there."""
        return self._deadlines_ms.pop(waiting, None) is not None

    def pop(self) -> T:
        """Removes and returns the item that has waited longest. Raises KeyError if the queue is empty."""
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
                self._expire(self.pop())
        finally:  # after an error over one item, the others are handled in the next turn
            if self._deadlines_ms and self._timer is None:
                self._arm()
