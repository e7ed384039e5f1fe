"""A ZooKeeper session for the event loop: calls that wait for the network run in threads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from broker.workers import Workers
from programs.zookeeper.client import ZookeeperClient, ZookeeperSettings

T = TypeVar("T")


class ZookeeperSession:
    """A sequence of sessions: kazoo starts a new session when the last has expired."""

    def __init__(self, settings: ZookeeperSettings, on_event: Callable[[str | None], None]) -> None:
        """`on_event` is called on the loop: with the path of a watched znode that changes, and with None when the
        connection opens or closes."""
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
        """Returns the result of `work`, which runs in the session's thread, one call after another."""
        return await self._workers.call(lambda: work(self._client))

    async def call_beside(self, work: Callable[[ZookeeperClient], T]) -> T:
        """Returns the result of `work`, which runs in another thread, so that clients' offsets don't wait for the
        registry."""
        return await self._offsets.call(lambda: work(self._client))

    async def close(self) -> None:
        """Closes the session. Pending calls fail, so that no caller waits for a server that is gone."""
        await asyncio.to_thread(self._client.stop)
        self._workers.close()
        self._offsets.close()
