"""The logs of new partitions, made a few milliseconds' worth at a time: between two steps everybody else is served.

A topic of a few partitions is made within the change that creates it. Of one that has thousands the rest follows,
topics taking turns, and who has created it is answered when all is there.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

from broker.clock import Clock

STEP_MS = 4
"""How long clients are kept waiting at a time: for some ten logs."""


class _Topic:
    """The logs of a topic that are still to be created."""

    __slots__ = ("left", "made")

    def __init__(self) -> None:
        self.left: deque[Callable[[], None]] = deque()
        self.made = asyncio.Event()


class NewLogs:
    """Creates logs now or later, and answers those who wait for them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._topics: OrderedDict[str, _Topic] = OrderedDict()
        """The one whose turn it is comes first."""
        self._step_ends_ms: int | None = None
        """None while nothing is under way."""
        self._stopped = False

    def make(self, topic: str, work: Callable[[], None]) -> bool:
        """Creates a partition's log; False when that is left for later, after earlier ones of the topic."""
        if self._stopped:
            return False
        if self._step_ends_ms is None:
            self._begin_step()
        elif topic in self._topics or self._is_over():
            self._topics.setdefault(topic, _Topic()).left.append(work)
            return False
        work()
        return True

    async def made(self, topics: Iterable[str]) -> None:
        """Returns once all logs of these topics are created that are to be by now."""
        for name in topics:
            topic = self._topics.get(name)
            if topic is not None:
                await topic.made.wait()

    def forget(self, name: str) -> None:
        """Forgets a deleted topic: its missing logs are not created any more, and nobody waits for them."""
        topic = self._topics.pop(name, None)
        if topic is not None:
            topic.made.set()

    def stop(self) -> None:
        """Creates no more logs: their requests need not wait, the next start creates them."""
        self._stopped = True
        for name in list(self._topics):
            self.forget(name)

    def _begin_step(self) -> None:
        """Begins a step, which ends when the loop has served the others."""
        self._step_ends_ms = self._clock.monotonic_ms() + STEP_MS
        asyncio.get_running_loop().call_soon(self._step)

    def _is_over(self) -> bool:
        return self._step_ends_ms is not None and self._clock.monotonic_ms() >= self._step_ends_ms

    def _step(self) -> None:
        self._step_ends_ms = None
        if not self._topics:
            return
        self._begin_step()
        self._make_next()
        while self._topics and not self._is_over():
            self._make_next()

    def _make_next(self) -> None:
        """Creates one log of the topic whose turn it is; a small topic does not wait for a large one."""
        name, topic = self._topics.popitem(last=False)
        work = topic.left.popleft()
        if topic.left:
            self._topics[name] = topic
        try:
            work()
        finally:
            if not topic.left:
                topic.made.set()
