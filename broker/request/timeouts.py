"""The deadlines of parked requests."""

from __future__ import annotations

from collections import deque
from functools import partial

from broker.clock import NS_PER_MS, TIMER_RESOLUTION_NS, Clock
from broker.request.pending import Parked


class Timeouts:
    """Expires parked requests. One timer serves all requests with the same timeout; nearly all consumers use the
    same.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queues: dict[int, deque[Parked]] = {}

    def add(self, parked: Parked, max_wait_ms: int) -> None:
        """Expires the request after `max_wait_ms`, unless it has completed by then."""
        parked.deadline_ns = self._clock.monotonic_ns() + max_wait_ms * NS_PER_MS
        queue = self._queues.get(max_wait_ms)
        if queue is None:
            queue = self._queues[max_wait_ms] = deque()
            self._arm(max_wait_ms, max_wait_ms)
        while queue and queue[0].is_over:
            queue.popleft()
        queue.append(parked)

    def _arm(self, delay_ms: float, max_wait_ms: int) -> None:
        self._clock.call_after(delay_ms, partial(self._expire, max_wait_ms))

    def _expire(self, max_wait_ms: int) -> None:
        queue = self._queues[max_wait_ms]
        now_ns = self._clock.monotonic_ns()
        try:
            while queue and (queue[0].is_over or queue[0].deadline_ns <= now_ns + TIMER_RESOLUTION_NS):
                parked = queue.popleft()
                if not parked.is_over:
                    parked.expire()
        finally:  # an error of one request must not keep the others from expiring
            if queue:
                self._arm(max(queue[0].deadline_ns - now_ns, 0) / NS_PER_MS, max_wait_ms)
            else:
                del self._queues[max_wait_ms]
