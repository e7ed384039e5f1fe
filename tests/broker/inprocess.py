"""A whole broker in the test's process. Tests send it frames without a socket; everything else is as in production."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pytest

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.dispatch.api import WireParser
from broker.dispatch.dispatcher import FRONT_BYTES
from broker.handlers import APIS
from broker.metadata.led_log import LedLog
from broker.network.connection import ServerConnection
from broker.request.context import Context
from programs.run.controller_server import ControllerServer
from programs.run.server import Server
from protocol.codec import decode, encode
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.schema import identity
from tests.waiting import until

R = TypeVar("R")
CORRELATION_ID = 7
LONG_S = 60
"""A timeout that no answer reaches: a flush on a busy device may take several seconds."""


class Wire(asyncio.Transport):
    """A transport that records a connection's writes."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.closing = False
        self.aborted = False
        self.reading = True
        self.unread_bytes = 0
        """The bytes that the peer hasn't read yet."""
        self.answered = asyncio.Event()
        """Set when bytes are written, or the connection is closed."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.1", 1) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def writelines(self, list_of_data: Any) -> None:
        for data in list_of_data:
            self.sent += data
        self.answered.set()

    def is_closing(self) -> bool:
        return self.closing

    def is_reading(self) -> bool:
        return self.reading

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes

    def close(self) -> None:
        self.closing = True
        self.answered.set()

    def abort(self) -> None:
        self.closing = self.aborted = True
        self.answered.set()

    def take(self) -> list[bytes]:
        """Returns the frames written since the last call, without their sizes."""
        frames, data = [], bytes(self.sent)
        self.sent.clear()
        while data:
            size = struct.unpack_from(">i", data)[0]
            frames.append(data[4 : 4 + size])
            data = data[4 + size :]
        return frames


class Client:
    """A connection to the broker."""

    def __init__(self, server: Server | ControllerServer, listener: int = 0) -> None:
        self.wire = Wire()
        self.connection = ServerConnection(server.listeners[listener])
        self.connection.connection_made(self.wire)

    def send(self, data: bytes) -> None:
        """Sends bytes as a socket delivers them: into the listener's buffer, or into the buffer of the connection."""
        while data:
            room = self.connection.get_buffer(-1)
            count = min(len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            self.connection.buffer_updated(count)

    async def frames(self, count: int) -> list[bytes]:
        """Returns the next answers, as they are on the wire."""
        await until(lambda: self.wire.sent or self.wire.closing)
        return self.wire.take()[:count]

    async def ask(self, request: object, version: int, response: type[R]) -> R:
        """Sends a request, and returns its decoded answer."""
        self.send(request_frame(request, version))
        (frame,) = await self.frames(1)
        return decode_response(frame, identity(type(request)).key, version, response)


def request_frame(request: object, version: int) -> bytes:
    """Returns a request as a client frames it."""
    message = identity(type(request))
    head = struct.pack(">hhih", message.key, version, CORRELATION_ID, 4) + b"test"
    body = head + (b"\0" if version in message.flexible else b"") + encode(request, version)
    return struct.pack(">i", len(body)) + body


def parsed_in_place(broker: InProcess, key: int, version: int, frame: memoryview, position: int) -> object | None:
    """Returns the request as the API's own parser returns it; None if it leaves the request to the codec."""
    api = APIS.find(key)
    assert api is not None
    assert api.wire is not None
    context = Context(Client(broker.server).connection, key, version, CORRELATION_ID, None, len(frame))
    return api.wire.parse(broker.server.broker, context, frame, bytes(frame[:FRONT_BYTES]), position)


def parse_by(monkeypatch: pytest.MonkeyPatch, key: int, wire: WireParser | None) -> None:
    """Makes the API's requests go through this parser, or only through the codec."""
    row = APIS.find(key)
    assert row is not None
    monkeypatch.setitem(APIS._rows, key, replace(row, wire=wire))


def decode_response(frame: bytes, key: int, version: int, response: type[R]) -> R:
    assert struct.unpack_from(">i", frame)[0] == CORRELATION_ID
    has_tags = version in identity(response).flexible and key != 18
    return decode(response, version, memoryview(frame), 5 if has_tags else 4)[0]


class InProcess:
    """A context manager: `async with InProcess(tmp_path, {...options}) as broker`."""

    def __init__(self, directory: Path, options: dict[str, str] | None = None, clock: Clock | None = None) -> None:
        texts = {"log.dirs": str(directory), "listeners": "PLAINTEXT://127.0.0.1:0", **(options or {})}
        self.server = Server(BrokerConfig.parse(texts), asyncio.Event(), clock=clock)

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for listener in self.server.listeners:
            for connection in tuple(listener.connections):
                assert isinstance(connection, ServerConnection)
                connection.connection_lost(None)
        await self.server.stop()

    def client(self) -> Client:
        return Client(self.server)

    async def settled(self) -> None:
        """Returns once all earlier decisions are applied to the metadata, and listeners have the certificates of their
        options."""
        log = self.server.metadata.metadata_log
        assert isinstance(log, LedLog)
        await log.committed(log.end_offset)
        for door in self.server._listening.tls_doors:
            if door.renewal is not None:
                await door.renewal

    async def create_topic(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Creates a topic, with configs by attribute names (`max_message_bytes="100"`); returns its id."""
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings
        )
        response = await self.server.broker.topics.create(CreateTopicsRequest(topics=[topic], timeout_ms=1000))
        assert response.topics[0].error_code == 0, response
        return response.topics[0].topic_id
