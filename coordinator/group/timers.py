"""Timers of a shard: a dict of deadlines, and a heap that finds the earliest.

A heartbeat postpones a deadline far more often than a deadline passes, so postponing only changes the dict: the heap
keeps the old time, and gets a new entry when that comes. Source: Kafka's CoordinatorTimer.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator
from typing import Final

from coordinator.group.records import GroupOutcome
from coordinator.outcome import Outcome, Reply
from coordinator.shard import EXPIRY_RETRY_MS
from protocol.errors import KafkaError

Action = Callable[[int], GroupOutcome]
"""The decision after the deadline has passed: (now_ms) → Outcome."""

NOTHING: GroupOutcome = Outcome()

MAX_RUNS: Final = 4
"""Maximum of runs of a timer in one call of `expire`: an action may set its timer for now, as a rebalance without a
delay does, but one that always did would block the event loop."""

MAX_RETRY_MS: Final = 60_000
"""Longest pause of an action that fails repeatedly because of a bug. It is tried for ever: the group may change its
state meanwhile, and without the timer it would stay in this state."""


class ShardTimer:
    """An action and its deadline."""

    __slots__ = ("action", "deadline_ms", "retry_ms")

    def __init__(self, deadline_ms: int, action: Action) -> None:
        self.deadline_ms = deadline_ms
        self.action = action
        self.retry_ms = EXPIRY_RETRY_MS
        """The pause before it runs again if it fails."""


class Timers:
    """Timers by key, such as ("session", group id, member id); setting a key again replaces its timer."""

    def __init__(self) -> None:
        self._timers: dict[Hashable, ShardTimer] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._in_heap: dict[Hashable, int] = {}
        """The earliest time of each key's entries in the heap."""
        self._count = 0
        self._replies: list[Reply] = []
        """Replies of actions that have run, until their outcome is returned."""
        self._running: tuple[Hashable, ShardTimer] | None = None
        """The timer that `expire` ran last."""

    def __contains__(self, key: Hashable) -> bool:
        return key in self._timers

    def __len__(self) -> int:
        return len(self._timers)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._timers)

    def set(self, key: Hashable, deadline_ms: int, action: Action) -> None:
        """Sets `action` to decide at `deadline_ms`, in place of the key's present timer."""
        self._timers[key] = ShardTimer(deadline_ms, action)
        if self._in_heap.get(key, deadline_ms + 1) > deadline_ms:
            self._push(key, deadline_ms)

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

    def deadline_ms(self, key: Hashable) -> int | None:
        """Returns the timer's deadline; None if it isn't set."""
        timer = self._timers.get(key)
        return None if timer is None else timer.deadline_ms

    def next_deadline_ms(self) -> int | None:
        """Returns the time of the next `expire`: the earliest deadline, or a little earlier."""
        if self._replies:
            return 0
        return self._heap[0][0] if self._heap else None

    def expire(self, now_ms: int) -> GroupOutcome:
        """Runs the due timers, in order, up to the first that has records: the next decides after they are applied.

        If an action raises, `failed` sets its timer again, and the next call continues after it.
        """
        runs: dict[Hashable, int] = {}
        while self._heap and self._heap[0][0] <= now_ms:
            due = self._pop(now_ms)
            if due is None:
                continue
            key, timer = due
            runs[key] = runs.get(key, 0) + 1
            if runs[key] > MAX_RUNS:
                self.set(key, now_ms + EXPIRY_RETRY_MS, timer.action)
                continue
            self._running = due
            outcome = timer.action(now_ms)
            self._replies += outcome.replies
            if outcome.records or outcome.then is not None:
                return self._returned(outcome)
        self._running = None
        return self._returned(NOTHING)

    def _returned(self, last: GroupOutcome) -> GroupOutcome:
        replies, self._replies = self._replies, []
        return Outcome(last.records, replies, last.then) if last.records or replies or last.then else NOTHING

    def failed(self, error: Exception, now_ms: int) -> None:
        """Sets the timer again that ran last and raised, or whose records could not be written, unless it has set
        itself again."""
        if self._running is None:
            return
        (key, timer), self._running = self._running, None
        if key in self._timers:
            return
        timer.deadline_ms = now_ms + timer.retry_ms
        if not isinstance(error, KafkaError):
            timer.retry_ms = min(2 * timer.retry_ms, MAX_RETRY_MS)
        self._timers[key] = timer
        self._push(key, timer.deadline_ms)

    def tickets(self) -> Iterator[Hashable]:
        """Returns the tickets that are answered in replies not yet returned."""
        return (ticket for ticket, _ in self._replies)

    def _pop(self, now_ms: int) -> tuple[Hashable, ShardTimer] | None:
        """Removes the heap's first entry; returns its timer, which is then no longer set, if it is due."""
        at_ms, _, key = heapq.heappop(self._heap)
        if self._in_heap.get(key) != at_ms:
            return None
        del self._in_heap[key]
        timer = self._timers.get(key)
        if timer is None:
            return None
        if timer.deadline_ms > now_ms:
            self._push(key, timer.deadline_ms)
            return None
        del self._timers[key]
        return key, timer

    def _push(self, key: Hashable, deadline_ms: int) -> None:
        self._count += 1  # keys need not be comparable
        self._in_heap[key] = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, self._count, key))
