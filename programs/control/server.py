"""The listener of the control server: persistent connections, each with one request at a time."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import Awaitable, Callable
from typing import Final, cast

from broker.config.control import ControlAddress
from broker.logging import get_logger
from programs.control.http import (
    MAX_BODY_BYTES,
    MAX_CONTROL_HEAD_BYTES,
    ControlAnswer,
    ControlRequest,
    RequestError,
    check_origin,
    encoded_answer,
    parse_request,
)

MAX_CONTROL_CONNECTIONS: Final = 256
"""Maximum number of connections: a few for each process of a test suite."""

MAX_PIPELINED_BYTES: Final = MAX_CONTROL_HEAD_BYTES + MAX_BODY_BYTES
OWNER_ONLY: Final = 0o600

Respond = Callable[[ControlRequest, "ControlConnection"], Awaitable[ControlAnswer]]

logger = get_logger(__name__)


class ControlServer:
    """Serves requests from `listen` to `close`."""

    def __init__(self, respond: Respond) -> None:
        """`respond` answers each request. It may raise RequestError."""
        self.respond = respond
        self.connections: set[ControlConnection] = set()
        self.on_end: Callable[[ControlConnection], None] = lambda connection: None
        """Called with each connection that ended."""
        self.hosts: frozenset[str] = frozenset()
        self._server: asyncio.AbstractServer | None = None
        self._path = ""

    async def listen(self, address: ControlAddress) -> str:
        """Binds and serves the address. Returns it in the form that clients connect to. Raises OSError."""
        loop = asyncio.get_running_loop()
        try:
            if address.path:
                sock = _owned_socket(address.path)
                self._server = await loop.create_unix_server(lambda: ControlConnection(self), sock=sock)
                self._path = address.path
                return f"unix:{address.path}"
            server = await loop.create_server(lambda: ControlConnection(self), address.host, address.port)
        except OSError as error:
            where = address.path or f"{address.host}:{address.port}"
            text = f"odradek.control.listener: cannot listen on {where}: {error.strerror or error}"
            raise OSError(error.errno, text) from None
        self._server = server
        self.hosts = frozenset({"localhost", address.host})
        host = f"[{address.host}]" if ":" in address.host else address.host
        return f"{host}:{server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        """Stops serving, and closes all connections."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self.connections):
            connection.abort()
        if self._path:
            _remove_socket(self._path)


def _owned_socket(path: str) -> socket.socket:
    """Returns a socket bound to the path, to which only its owner may connect. Replaces a socket that another broker
    left there."""
    _remove_socket(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o777 & ~OWNER_ONLY)
    try:
        sock.bind(path)
    except OSError:
        sock.close()
        raise
    finally:
        os.umask(before)
    return sock


def _remove_socket(path: str) -> None:
    try:
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            os.unlink(path)
    except FileNotFoundError:
        pass


class ControlConnection(asyncio.Protocol):
    """One client of the control server."""

    def __init__(self, server: ControlServer) -> None:
        self._server = server
        self._transport: asyncio.Transport = cast(
            asyncio.Transport, None
        )  # connection_made sets it before any other call
        self._received = bytearray()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.connections.add(self)
        if len(self._server.connections) > MAX_CONTROL_CONNECTIONS:
            self.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > MAX_PIPELINED_BYTES:
            self._transport.pause_reading()
        if self._task is None:
            self._next()

    def _next(self) -> None:
        """Starts the next request, if it is complete."""
        try:
            parsed = parse_request(self._received)
        except RequestError as error:
            self._send(error.answer, stays_open=False)
            return
        if parsed is None:
            self._transport.resume_reading()
            return
        request, size_bytes = parsed
        del self._received[:size_bytes]
        self._task = asyncio.get_running_loop().create_task(self._serve(request))

    async def _serve(self, request: ControlRequest) -> None:
        answer = await self._answer(request)
        self._task = None
        self._send(answer, stays_open=request.stays_open)
        if request.stays_open:
            self._next()

    async def _answer(self, request: ControlRequest) -> ControlAnswer:
        try:
            check_origin(request, self._server.hosts)
            return await self._server.respond(request, self)
        except RequestError as error:
            return error.answer
        except Exception as error:
            logger.error("control request failed", path="/".join(request.path), exc_info=error)
            return ControlAnswer(500, {"error": f"the broker failed: {error!r}"})

    def _send(self, answer: ControlAnswer, *, stays_open: bool) -> None:
        if not self._transport.is_closing():
            self._transport.write(encoded_answer(answer, stays_open=stays_open))
            if not stays_open:
                self._transport.close()

    def abort(self) -> None:
        """Closes at once, without sending pending bytes."""
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._task is not None:
            self._task.cancel()
        self._server.on_end(self)
