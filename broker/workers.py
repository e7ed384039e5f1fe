"""Threads for work that waits for a disk, because the event loop must never wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """A few threads, used from the event loop. They are started when there is work."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        """Runs `work` in a thread; then calls `then` on the event loop, with the error of `work` or None."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(lambda done: then(done.exception()))

    async def call(self, work: Callable[[], T]) -> T:
        """Runs `work` in a thread and returns its result."""
        return await self.begin(work)

    def begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Runs `work` in a thread, and returns the future of its result."""
        return asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Waits until the work that has begun is complete."""
        self._pool.shutdown()

    def abandon(self) -> None:
        """Starts no more work. Doesn't wait for the work that has begun, and ignores its results."""
        self._pool.shutdown(wait=False)


class DaemonThreads(Executor):
    """An executor with a thread for each piece of work. The process ends without waiting for them."""

    def __init__(self, name: str) -> None:
        self._name = name

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=run, name=self._name, daemon=True).start()
        return future
