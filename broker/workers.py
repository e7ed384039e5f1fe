"""Threads for work that waits for a disk, because the event loop must never wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

MAX_USUAL_BYTES: Final = 128 * 1024
"""The size of a large request that clients send in a cluster of ten thousand partitions."""

MAX_USUAL_ITEMS: Final = 32 * 1024
"""Items of an answer that are encoded in about the same time."""

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """A few threads, used from the event loop. They are started when there is work."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self.unfinished = 0
        """Number of pieces of work that `begin` was called for, and that have not ended."""

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        """Runs `work` in a thread; then calls `then` on the event loop, with the error of `work` or None."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(lambda done: then(done.exception()))

    async def call(self, work: Callable[[], T]) -> T:
        """Runs `work` in a thread and returns its result."""
        return await self.begin(work)

    def begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Runs `work` in a thread, and returns the future of its result."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        self.unfinished += 1
        future.add_done_callback(self._ended)
        return future

    def _ended(self, _: object) -> None:
        self.unfinished -= 1

    def close(self) -> None:
        """Waits until the work that has begun is complete."""
        self._pool.shutdown()

    def abandon(self) -> None:
        """Starts no more work. Doesn't wait for the work that has begun, and ignores its results."""
        self._pool.shutdown(wait=False)


class CodecThreads:
    """The threads that decode large requests and encode large answers: one for the largest of them, so that others
    don't wait for seconds. They share one interpreter lock, so more threads would only wait for each other."""

    def __init__(self) -> None:
        self._usual = Workers(1, "codec")
        self._largest = Workers(1, "large-codec")

    def of(self, size_bytes: int, items: int = 0) -> Workers:
        """Returns the thread for a request of that size, whose answer has so many items."""
        is_usual = size_bytes <= MAX_USUAL_BYTES and items <= MAX_USUAL_ITEMS
        return self._usual if is_usual else self._largest


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
