"""RunIndex: the runs of a share partition by state, lock and member, so that no request must search all of them.

A run is added when it enters the cache, and each change of the run's state updates the index (run.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from coordinator.share_partition.run import Run
from coordinator.share_partition.states import ACQUIRED, ARCHIVING, AVAILABLE, DELAYED, TERMINAL

STALE_KEYS: Final = 64
"""Stale keys that a heap may have beyond twice the keys in use; then it is rebuilt."""


class RunsByKey:
    """Runs by a number, an offset or a time, with fast access to the lowest."""

    __slots__ = ("_heap", "_runs")

    def __init__(self) -> None:
        self._runs: dict[int, set[Run]] = {}
        self._heap: list[int] = []
        """All keys in use, and stale keys without runs."""

    def __bool__(self) -> bool:
        return bool(self._runs)

    def add(self, key: int, run: Run) -> None:
        runs = self._runs.get(key)
        if runs is not None:
            runs.add(run)
            return
        self._runs[key] = {run}
        heappush(self._heap, key)
        if len(self._heap) > 2 * len(self._runs) + STALE_KEYS:
            self._heap = list(self._runs)
            heapify(self._heap)

    def add_beside(self, key: int, runs: Sequence[Run]) -> None:
        """Adds runs to those that the key already has."""
        self._runs[key].update(runs)

    def remove(self, key: int, run: Run) -> None:
        runs = self._runs[key]
        runs.remove(run)
        if not runs:
            del self._runs[key]

    def least(self) -> int | None:
        """Returns the lowest key; None if there is no run."""
        heap = self._heap
        while heap and heap[0] not in self._runs:
            heappop(heap)
        return heap[0] if heap else None

    def up_to(self, key: int) -> list[Run]:
        """Returns the runs whose keys are at most this key, in the order of their offsets."""
        keys: list[int] = []
        while (least := self.least()) is not None and least <= key:
            heappop(self._heap)
            keys.append(least)
        runs = {run for due in keys for run in self._runs[due]}
        for due in keys:
            heappush(self._heap, due)
        return in_order(runs)


def in_order(runs: set[Run]) -> list[Run]:
    """Returns the runs in the order of their offsets."""
    return sorted(runs, key=lambda run: run.first)


class RunIndex:
    """The runs of one share partition."""

    __slots__ = ("archiving", "available", "by_member", "done_count", "start_offset", "timed")

    def __init__(self) -> None:
        self.start_offset = 0
        """The offset below which all records are terminal (SPSO)."""
        self.done_count = 0
        """Terminal records from the start offset on (KIP-1226)."""
        self.available = RunsByKey()
        """Runs that can be acquired, by their first offset."""
        self.timed = RunsByKey()
        """Acquired or delayed runs, by the end of their lock or delay."""
        self.by_member: dict[str, set[Run]] = {}
        """Acquired runs, by their member."""
        self.archiving: set[Run] = set()
        """Runs that wait to be written to the dead-letter queue."""

    def from_start(self, run: Run) -> int:
        """Returns the number of a run's records at or beyond the start offset."""
        return max(run.last - max(self.start_offset, run.first) + 1, 0)

    def pass_over(self, run: Run, offset: int) -> None:
        """Removes a run's records below `offset`, the next start offset, from the count."""
        if run.state in TERMINAL:
            self.done_count -= min(run.last, offset - 1) - max(run.first, self.start_offset) + 1

    def add(self, run: Run) -> None:
        """Adds a run in its present state."""
        state = run.state
        if state in TERMINAL:
            self.done_count += self.from_start(run)
        elif state is ACQUIRED:
            self.by_member.setdefault(run.member_id, set()).add(run)
            self.timed.add(run.lock_until_ms, run)
        elif state is DELAYED:
            self.timed.add(run.lock_until_ms, run)
        elif run.change is not None:
            return
        elif state is AVAILABLE:
            self.available.add(run.first, run)
        elif state is ARCHIVING:
            self.archiving.add(run)

    def remove(self, run: Run) -> None:
        """Removes a run, whose state must be the same as when it was added."""
        state = run.state
        if state in TERMINAL:
            self.done_count -= self.from_start(run)
        elif state is ACQUIRED:
            runs = self.by_member[run.member_id]
            runs.remove(run)
            if not runs:
                del self.by_member[run.member_id]
            self.timed.remove(run.lock_until_ms, run)
        elif state is DELAYED:
            self.timed.remove(run.lock_until_ms, run)
        elif run.change is not None:
            return
        elif state is AVAILABLE:
            self.available.remove(run.first, run)
        elif state is ARCHIVING:
            self.archiving.remove(run)

    def add_parts(self, run: Run, parts: Sequence[Run]) -> None:
        """Adds the parts that a run was split into, beside the run itself; their records are counted already."""
        if run.state is ACQUIRED:
            self.by_member[run.member_id].update(parts)
            self.timed.add_beside(run.lock_until_ms, parts)
        elif run.state not in TERMINAL:
            for part in parts:
                self.add(part)

    def remove_part(self, run: Run) -> None:
        """Removes a run that the run before it absorbs; its records stay counted."""
        if run.state not in TERMINAL:
            self.remove(run)
