"""A peer that follows a script, on a real socket, and a clock that a test moves."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from broker.peers import Address
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.protocol.client_talk import COMMON, Sent, answer, read_request

METADATA = MetadataRequest(topics=[])
PATIENCE_S = 20
"""After which a test has failed; nothing waits for it to pass."""


class ManualClock:
    """`broker.clock.Clock` that stands still unless a test moves it."""

    def __init__(self) -> None:
        self._now_ms = 1_000_000
        self._timers: list[ManualTimer] = []
        self._armed = asyncio.Event()

    def now_ms(self) -> int:
        return self._now_ms + 5_000_000

    def monotonic_ms(self) -> int:
        return self._now_ms

    def call_at(self, when_ms: int, then: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self, when_ms, then)
        self._timers.append(timer)
        self._armed.set()
        return timer

    def forget(self, timer: ManualTimer) -> None:
        if timer in self._timers:
            self._timers.remove(timer)
        if not self._timers:
            self._armed.clear()

    def advance(self, by_ms: int) -> None:
        self._now_ms += by_ms
        for timer in [timer for timer in self._timers if timer.when_ms <= self.now_ms()]:
            self.forget(timer)
            timer.then()

    async def next_timer(self) -> int:
        """Waits until something waits for time to pass; how long it has to, in milliseconds."""
        async with asyncio.timeout(PATIENCE_S):
            await self._armed.wait()
        return min(timer.when_ms for timer in self._timers) - self.now_ms()


class ManualTimer:
    def __init__(self, clock: ManualClock, when_ms: int, then: Callable[[], None]) -> None:
        self.clock = clock
        self.when_ms = when_ms
        self.then = then

    def cancel(self) -> None:
        self.clock.forget(self)


class Talk:
    """The peer's end of one connection."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        """Which connection it is, from 1 on."""
        self.reader = reader
        self.writer = writer

    async def request(self) -> Sent:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return read_request(await self.reader.readexactly(size))

    async def reply(self, request: Sent, response: object) -> None:
        await self.write(answer(response, request.version, request.header.correlation_id))

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def greet(self) -> None:
        """Negotiates."""
        await self.reply(await self.request(), COMMON)

    async def gone(self) -> bytes:
        """Waits until the client has closed; what it sent before."""
        return await self.reader.read()


Script: TypeAlias = Callable[[Talk], Awaitable[None]]


@asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[Address]:
    """A peer at an address; each connection follows the script, and is closed behind it."""
    numbers = itertools.count(1)
    talks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await script(Talk(next(numbers), reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has closed
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(talk(reader, writer))
        talks.add(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield Address(*server.sockets[0].getsockname()[:2])
    finally:
        server.close()
        for task in talks:
            task.cancel()
        for result in await asyncio.gather(*talks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result


async def answer_all(talk: Talk) -> None:
    """A peer as it should be, to Metadata; the cluster's id is the connection's number."""
    await talk.greet()
    while True:
        request = await talk.request()
        await talk.reply(request, metadata(str(talk.number)))


def metadata(cluster_id: str) -> MetadataResponse:
    return MetadataResponse(brokers=[], topics=[], cluster_id=cluster_id)
