"""Creates the logs of new partitions in steps of a few milliseconds; clients are served between steps.

The logs of a topic with a few partitions are created at once, by the change that creates the topic. The logs of a topic
with thousands of partitions follow in steps, in which topics take turns; the client gets its answer when all of them
exist.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

from broker.clock import Clock
from broker.steps import STEP_MS, Steps


class _Topic:
    """The logs of a topic that have not been created yet."""

    __slots__ = ("left", "made")

    def __init__(self) -> None:
        self.left: deque[Callable[[], None]] = deque()
        self.made = asyncio.Event()


class NewLogs:
    """Creates logs now or later, and completes the requests that wait for them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.changes = Steps(clock)
        """Applies committed changes to this broker's partitions, in their order. They may queue new logs."""
        self._topics: OrderedDict[str, _Topic] = OrderedDict()
        """The topics with missing logs, the next topic first."""
        self._step_ends_ms: int | None = None
        """The time when the current step ends; None between steps."""
        self._stopped = False

    def make(self, topic: str, work: Callable[[], None]) -> bool:
        """Calls `work`, which creates a partition's log, and returns True. Returns False if `work` is queued for a
        later step.
        """
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
        """Returns once the queued changes are applied, and the queued logs of these topics exist."""
        await self.changes.over()
        awaited = [self._topics[name] for name in self._topics.keys() & set(topics)]
        for topic in awaited:
            await topic.made.wait()

    def forget(self, name: str) -> None:
        """Removes a deleted topic: its queued logs are not created, and requests that wait for them continue."""
        topic = self._topics.pop(name, None)
        if topic is not None:
            topic.made.set()

    def stop(self) -> None:
        """Applies the queued changes, and creates no more logs: the next start creates them. Completes the requests
        that wait."""
        self._stopped = True
        self.changes.stop()
        for name in list(self._topics):
            self.forget(name)

    def _begin_step(self) -> None:
        """Begins a step. The event loop serves others before it begins the next."""
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
        """Creates a log of the next topic in turn, so that a small topic doesn't wait for a large one."""
        name, topic = self._topics.popitem(last=False)
        work = topic.left.popleft()
        if topic.left:
            self._topics[name] = topic
        try:
            work()
        finally:
            if not topic.left:
                topic.made.set()
