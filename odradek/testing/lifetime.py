"""The life of a broker or a cluster: from `start` to `close`, or as long as a `with` block."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Generic, Self, TypeVar

from odradek.testing.process import START_S

A = TypeVar("A")


class Lifetime(ABC, Generic[A]):
    """A context manager, which starts at its beginning and closes at its end; an asynchronous one does it in a thread,
    and gives the view with coroutines."""

    @property
    @abstractmethod
    def aio(self) -> A:
        """Returns the same with coroutines, for tests that have an event loop."""

    @abstractmethod
    def start(self, *, timeout_s: float = START_S) -> None:
        """Returns once all of it serves. Raises BrokerError, with the end of a log, where it does not."""

    @abstractmethod
    def close(self) -> None:
        """Ends it, and removes its directory. May be called again."""

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
        except asyncio.CancelledError:  # the thread goes on, and nobody else would end what it has started by then
            await asyncio.gather(starting, return_exceptions=True)
            await asyncio.to_thread(self.close)
            raise
        return self.aio

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)
