"""A peer that follows a script on a real socket."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from client.address import Address
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.client.talk import COMMON, Sent, answer, read_request

METADATA = MetadataRequest(topics=[])
PATIENCE_S = 20
"""Time after which a test fails. A test that passes doesn't wait for it."""


class Talk:
    """The peer's end of one connection."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        """The number of the connection, counted from 1."""
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
        """Negotiates the API versions."""
        await self.reply(await self.request(), COMMON)

    async def gone(self) -> bytes:
        """Waits until the client has closed the connection. Returns the bytes that the client sent before."""
        return await self.reader.read()


Script: TypeAlias = Callable[[Talk], Awaitable[None]]


@asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[Address]:
    """Yields the address of a peer. Each connection follows the script, and is closed at its end."""
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
    """Answers Metadata requests as a valid peer; the cluster id is the number of the connection."""
    await talk.greet()
    while True:
        request = await talk.request()
        await talk.reply(request, metadata(str(talk.number)))


def metadata(cluster_id: str) -> MetadataResponse:
    return MetadataResponse(brokers=[], topics=[], cluster_id=cluster_id)
