"""A session with ZooKeeper for the event loop: what waits for the network does so in threads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from broker.workers import Workers
from programs.zookeeper.client import ZookeeperClient, ZookeeperSettings

T = TypeVar("T")


class ZookeeperSession:
    """One session after the other: kazoo begins a new one when the last has expired."""

    def __init__(self, settings: ZookeeperSettings, on_event: Callable[[str | None], None]) -> None:
        """`on_event` is called on the loop with the path of a watched znode that changed, and with None when the
        connection came or went."""
        self._loop = asyncio.get_running_loop()
        self._on_event = on_event
        self._workers = Workers(1, "zookeeper")
        self._offsets = Workers(1, "zookeeper-offsets")
        self._client = ZookeeperClient(settings, self._from_thread)

    def _from_thread(self, path: str | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._on_event, path)

    async def open(self) -> None:
        """Connects. Raises ZookeeperUnavailable, ZookeeperRefused."""
        await self._workers.call(self._client.start)

    @property
    def connected(self) -> bool:
        return self._client.connected

    async def call(self, work: Callable[[ZookeeperClient], T]) -> T:
        """Returns what `work` does in the session's thread, one after the other."""
        return await self._workers.call(lambda: work(self._client))

    async def call_beside(self, work: Callable[[ZookeeperClient], T]) -> T:
        """As `call`, in another thread: clients' offsets do not wait for the registry."""
        return await self._offsets.call(lambda: work(self._client))

    async def close(self) -> None:
        """Ends the session. Work that waits for an answer fails, so that nothing waits for a server that is gone."""
        await asyncio.to_thread(self._client.stop)
        self._workers.close()
        self._offsets.close()
