"""Timers of a shard: a dict of deadlines, and a heap that finds the earliest.

A heartbeat postpones a deadline far more often than a deadline passes, so postponing only changes the dict: the heap
keeps the old time, and gets a new entry when that comes. The heap keeps the entries of cancelled timers too, until they
are more than the timers. Source: Kafka's CoordinatorTimer.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Final

from coordinator.engine.machine import EXPIRY_RETRY_MS
from coordinator.engine.result import Result
from coordinator.group.records import GroupResult
from protocol.backoff import Backoff
from protocol.errors import KafkaError

Action = Callable[[int], GroupResult]
"""The decision after the deadline has passed: (now_ms) → Result."""

MAX_RUNS: Final = 4
"""Maximum number of runs of a timer at one time: an action may set its timer for now, as a rebalance without a delay
does, but an action that always does so would block the event loop."""

STALE_ENTRIES: Final = 64
"""Stale entries that the heap may have beyond one for each timer; then it is rebuilt."""

MAX_RETRY_MS: Final = 60_000
"""Longest pause of an action that fails repeatedly because of a bug. It is tried for ever: the group may change its
state meanwhile, and without the timer it would stay in this state."""
RETRIES: Final = Backoff(initial_ms=EXPIRY_RETRY_MS, max_ms=MAX_RETRY_MS)


class ShardTimer:
    """An action and its deadline."""

    __slots__ = ("action", "deadline_ms", "failures")

    def __init__(self, deadline_ms: int, action: Action) -> None:
        self.deadline_ms = deadline_ms
        self.action = action
        self.failures = 0
        """The number of times that it has failed because of a bug."""


class Timers:
    """Timers by key, such as ("session", group id, member id); setting a key again replaces its timer."""

    def __init__(self) -> None:
        self._timers: dict[Hashable, ShardTimer] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._in_heap: dict[Hashable, int] = {}
        """The earliest time of each key's entries in the heap."""
        self._count = 0
        self._ran_at_ms = -1
        """The time of the last run."""
        self._runs: dict[Hashable, int] = {}
        """The number of runs of each key at that time."""

    def __contains__(self, key: Hashable) -> bool:
        return key in self._timers

    def __len__(self) -> int:
        return len(self._timers)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._timers)

    def set(self, key: Hashable, deadline_ms: int, action: Action) -> None:
        """Sets a timer that runs `action` at `deadline_ms`, and replaces the key's present timer. If the key has
        already run MAX_RUNS times at that time, the timer runs a little later."""
        if deadline_ms <= self._ran_at_ms and self._runs.get(key, 0) >= MAX_RUNS:
            deadline_ms = self._ran_at_ms + EXPIRY_RETRY_MS
        self._timers[key] = ShardTimer(deadline_ms, action)
        if self._in_heap.get(key, deadline_ms + 1) > deadline_ms:
            self._push(key, deadline_ms)
            self._drop_stale()

    def postpone(self, key: Hashable, deadline_ms: int) -> bool:
        """Changes the deadline of the key's timer; False if there is none."""
        timer = self._timers.get(key)
        if timer is None:
            return False
        if deadline_ms < timer.deadline_ms:
            self.set(key, deadline_ms, timer.action)
        else:
            timer.deadline_ms = deadline_ms
        return True

    def cancel(self, key: Hashable) -> None:
        """Removes the timer, if there is one."""
        self._timers.pop(key, None)
        self._drop_stale()

    def deadline_ms(self, key: Hashable) -> int | None:
        """Returns the timer's deadline; None if it isn't set."""
        timer = self._timers.get(key)
        return None if timer is None else timer.deadline_ms

    def next_deadline_ms(self) -> int | None:
        """Returns the time of the next `expire`: the earliest deadline, or a little earlier."""
        return self._heap[0][0] if self._heap else None

    def expire(self, now_ms: int) -> GroupResult:
        """Decides on the first timer that is due; the effects remove the timer, unless the action sets it again."""
        due = self._first_due(now_ms)
        if due is None:
            return Result()
        result = due[1].action(now_ms)
        result.effects.insert(0, partial(self._ran, *due, now_ms))
        return result

    def failed(self, error: Exception, now_ms: int) -> None:
        """Postpones the first timer that is due: its action raised, or its records could not be written."""
        due = self._first_due(now_ms)
        if due is not None:
            timer = due[1]
            timer.deadline_ms = now_ms + RETRIES.delay_ms(timer.failures + 1)
            if not isinstance(error, KafkaError):
                timer.failures += 1

    def _ran(self, key: Hashable, timer: ShardTimer, now_ms: int) -> None:
        if self._timers.get(key) is timer:
            del self._timers[key]
        if now_ms != self._ran_at_ms:
            self._ran_at_ms, self._runs = now_ms, {}
        self._runs[key] = self._runs.get(key, 0) + 1

    def _first_due(self, now_ms: int) -> tuple[Hashable, ShardTimer] | None:
        """Returns the first timer that is due. Removes outdated entries from the heap."""
        while self._heap and self._heap[0][0] <= now_ms:
            at_ms, _, key = self._heap[0]
            timer = self._timers.get(key)
            is_newest = self._in_heap.get(key) == at_ms
            if is_newest and timer is not None and timer.deadline_ms <= now_ms:
                return key, timer
            heapq.heappop(self._heap)
            if is_newest:
                del self._in_heap[key]
                if timer is not None:
                    self._push(key, timer.deadline_ms)
        return None

    def _drop_stale(self) -> None:
        """Rebuilds the heap if most of its entries are stale: of cancelled timers, or later than another of the same
        key. Otherwise it would keep a member that has left until the latest deadline that it ever had."""
        if len(self._heap) > 2 * len(self._timers) + STALE_ENTRIES:
            self._heap, self._in_heap = [], {}
            for key, timer in self._timers.items():
                self._push(key, timer.deadline_ms)

    def _push(self, key: Hashable, deadline_ms: int) -> None:
        self._count += 1  # keys need not be comparable
        self._in_heap[key] = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, self._count, key))
