"""Runs work of many small pieces in steps of a few milliseconds; clients are served between steps."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

from broker.clock import Clock

STEP_MS: Final = 4
"""Length of a step, during which clients wait: about ten new logs, or forty deleted logs."""


class Steps:
    """Runs work in the order in which it was queued. Work is an iterator, which yields after each piece."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queued: deque[Iterator[None]] = deque()
        self._is_stopped = False

    def run(self, work: Iterator[None]) -> None:
        """Queues the work, or begins it at once if no work is queued. Raises an error of the first step."""
        self._queued.append(work)
        if len(self._queued) > 1:
            return  # the work before it is in progress, and this follows
        if self._is_stopped:
            self._run_all()
        else:
            self._step()

    async def over(self) -> None:
        """Returns once the work that is queued now is done."""
        if self._queued:
            done = asyncio.get_running_loop().create_future()
            self._queued.append(_completion(done))
            await done

    def stop(self) -> None:
        """Runs all queued work; later work runs at once."""
        self._is_stopped = True
        self._run_all()

    def _step(self) -> None:
        ends_ms = self._clock.monotonic_ms() + STEP_MS
        try:
            while self._queued:
                self._run_piece()
                if self._clock.monotonic_ms() >= ends_ms:
                    break
        finally:
            if self._queued:
                asyncio.get_running_loop().call_soon(self._step)

    def _run_all(self) -> None:
        """Runs all queued work, even if a piece fails; then raises that error."""
        try:
            while self._queued:
                self._run_piece()
        finally:
            if self._queued:
                self._run_all()

    def _run_piece(self) -> None:
        """Runs the next piece, and forgets work that has ended or failed."""
        work = self._queued[0]
        has_more = False
        try:
            has_more = next(work, work) is not work
        finally:
            if not has_more:
                self._queued.popleft()


def _completion(done: asyncio.Future[None]) -> Iterator[None]:
    """Completes the future of a caller that may have been cancelled."""
    if not done.done():
        done.set_result(None)
    yield
