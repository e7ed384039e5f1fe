"""Threads for work that waits for a disk: the event loop never does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Workers:
    """A few threads, used from the event loop; they start when there is work."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        """Runs `work` in a thread; afterwards calls `then` on the loop, with the error that `work` raised, if any."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(lambda done: then(done.exception()))

    async def call(self, work: Callable[[], T]) -> T:
        """Runs `work` in a thread and returns its result."""
        return await self.begin(work)

    def begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Runs `work` in a thread, and returns the future of its result."""
        return asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Waits for begun work."""
        self._pool.shutdown()

    def abandon(self) -> None:
        """Begins no more work, and waits for none: what has begun comes to an end that nobody hears of."""
        self._pool.shutdown(wait=False)
