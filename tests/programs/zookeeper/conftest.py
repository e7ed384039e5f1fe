"""Brokers in the test's process, with a dictionary in place of ZooKeeper."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from programs.run import zookeeper
from tests.broker.inprocess import InProcess
from tests.programs.zookeeper.ensemble import Ensemble, MemorySession
from tests.waiting import until

LONG_S = 30
Start = Callable[..., AbstractAsyncContextManager[InProcess]]


@pytest.fixture
def ensemble() -> Ensemble:
    return Ensemble()


@pytest.fixture
def start(tmp_path: Path, ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts a broker with zookeeper.connect."""
    monkeypatch.setattr(zookeeper, "ZookeeperSession", partial(MemorySession, ensemble=ensemble))

    @contextlib.asynccontextmanager
    async def started(name: str = "data", **options: str) -> AsyncIterator[InProcess]:
        texts = {key.replace("_", "."): value for key, value in options.items()}
        async with InProcess(tmp_path / name, {"zookeeper.connect": "memory", **texts}) as broker:
            await until(lambda: "/controller" in ensemble.nodes)
            yield broker

    return started


def session_of(broker: InProcess) -> MemorySession:
    """Returns the broker's session, which uses the dictionary."""
    side = broker.server._zookeeper
    assert side is not None
    session = side._session
    assert isinstance(session, MemorySession)
    return session


async def quiet(turns: Callable[[], Awaitable[None]] | None = None) -> None:
    """Returns once all due work is done."""
    for _ in range(200):
        await asyncio.sleep(0)
