"""The deadlines of requests that are parked."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import Final

from broker.exchange.pending import Parked

TIMER_RESOLUTION_S: Final = 0.0005
"""An event loop's clock has milliseconds, and may call that much too early."""


class Timeouts:
    """Ends what has waited long enough: by one timer for all that wait equally long, as nearly all consumers do."""

    def __init__(self) -> None:
        self._queues: dict[int, deque[Parked]] = {}

    def add(self, parked: Parked, max_wait_ms: int) -> None:
        """It expires at its deadline, which is so far from now, if it is not over by then."""
        queue = self._queues.get(max_wait_ms)
        if queue is None:
            queue = self._queues[max_wait_ms] = deque()
            self._arm(parked.deadline_s, max_wait_ms)
        while queue and queue[0].is_over:
            queue.popleft()
        queue.append(parked)

    def _arm(self, deadline_s: float, max_wait_ms: int) -> None:
        asyncio.get_running_loop().call_at(deadline_s, partial(self._expire, max_wait_ms))

    def _expire(self, max_wait_ms: int) -> None:
        queue = self._queues[max_wait_ms]
        now_s = asyncio.get_running_loop().time() + TIMER_RESOLUTION_S
        try:
            while queue and (queue[0].is_over or queue[0].deadline_s <= now_s):
                parked = queue.popleft()
                if not parked.is_over:
                    parked.expire()
        finally:  # whatever one of them comes to, the others have their time
            if queue:
                self._arm(queue[0].deadline_s, max_wait_ms)
            else:
                del self._queues[max_wait_ms]
