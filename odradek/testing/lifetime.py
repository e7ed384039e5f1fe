"""The lifetime of a broker or a cluster: from `start` to `close`, or a `with` block."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Generic, Self, TypeVar

from odradek.testing.process import START_S

__tracebackhide__ = True

A = TypeVar("A")


class Lifetime(ABC, Generic[A]):
    """A context manager that starts and closes a broker or cluster. `async with` does so in a thread, and returns the
    object with coroutines."""

    @property
    @abstractmethod
    def aio(self) -> A:
        """Returns the same object, with coroutines as methods, for tests that have an event loop."""

    @abstractmethod
    def start(self, *, timeout_s: float = START_S) -> None:
        """Starts all brokers, and returns once they serve. Raises BrokerError, with the end of a log, if a broker
        doesn't."""

    @abstractmethod
    def close(self) -> None:
        """Stops all brokers, and removes their directory. May be called again."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> A:
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:  # the thread continues: wait for it, then close what it has started
            await asyncio.gather(starting, return_exceptions=True)
            await asyncio.to_thread(self.close)
            raise
        return self.aio

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)
