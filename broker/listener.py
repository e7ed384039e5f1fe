"""Sockets: asyncio's buffered protocol around protocol.connection, with order, back-pressure and limits.

All connections of a listener read into one buffer, since a read is handled before the next one starts; an idle
connection therefore holds no buffer at all. A connection has one request at work at a time, as Apache Kafka's does:
while an answer is awaited, or the peer is slow to read, further requests wait and the kernel slows the peer down.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias, cast

from broker.admission import Admission
from broker.logging import get_logger
from broker.waiting import Parked
from protocol.connection import FrameReader
from protocol.errors import ProtocolError
from protocol.types import Buffer

RECEIVE_BUFFER_BYTES: Final = 512 * 1024
"""What one read can take: several produce batches of the usual 16 KiB to 64 KiB in one system call."""

WRITE_HIGH_WATER_BYTES: Final = 512 * 1024
"""Answers not yet taken by the peer beyond which its requests wait."""

REQUESTS_PER_TURN: Final = 256
"""Requests of one connection that are answered in a row while others wait: a few milliseconds' worth. A read can hold
ten thousand of the smallest."""

COALESCED_ANSWERS: Final = 32
"""Short answers to requests that came in one read go out by one system call, which costs more than an append; so many
at once, which stay below the high water mark."""

Later: TypeAlias = "list[Buffer] | Parked | None"
Answer: TypeAlias = "Later | Coroutine[Any, Any, Later]"
"""Buffers to write, None for no answer, something to await for either, or what will say it in its time."""

log: Final = get_logger("broker.listener")


class Listener:
    """One listening address: its name, who answers what comes in by it, its connections."""

    def __init__(
        self,
        name: str,
        answer: Callable[[ServerConnection, memoryview], Answer],
        *,
        max_request_bytes: int,
        admission: Admission,
    ) -> None:
        self.name = name
        self.answer = answer
        self.max_request_bytes = max_request_bytes
        self.admission = admission
        self.receive_buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self.connections: set[ServerConnection] = set()
        self._empty = asyncio.Event()

    def connection(self) -> asyncio.BufferedProtocol:
        """The protocol factory for uvloop's `create_server`."""
        return cast(asyncio.BufferedProtocol, ServerConnection(self))

    def forget(self, connection: ServerConnection) -> None:
        """A connection is closed."""
        self.connections.remove(connection)
        self.admission.release(connection)
        if not self.connections:
            self._empty.set()

    def close_idle(self) -> None:
        """Closes the connections on which nothing came since the last call (connections.max.idle.ms)."""
        for connection in tuple(self.connections):
            connection.close_if_idle()

    def close_all(self) -> None:
        """Closes every connection once its answers have gone out."""
        for connection in tuple(self.connections):
            connection.close()

    async def emptied(self) -> None:
        """Waits until no connection is left."""
        while self.connections:
            self._empty.clear()
            await self._empty.wait()

    def abort_all(self) -> None:
        """Closes every connection now, whatever is still to be sent."""
        for connection in tuple(self.connections):
            connection.transport.abort()


class ServerConnection:
    """One client: reads frames, hands each to the listener's `answer`, writes what comes back, in order.

    An asyncio.BufferedProtocol by its methods. It is none by its class, which uvloop does not ask for: a class that has
    no other above it can be compiled, its attributes with it.
    """

    __slots__ = (
        "_active", "_admitted", "_busy", "_held", "_parked", "_pending", "_queue", "_write_paused", "client_software",
        "closed", "ip", "listener", "on_close", "peer", "reader", "transport",
    )  # fmt: skip

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.reader = FrameReader(listener.max_request_bytes)
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)  # set before anything else is called
        self.peer = ""
        self.ip = ""
        self.closed = False
        self.client_software = ("unknown", "unknown")
        self.on_close: list[Callable[[ServerConnection], None]] = []
        """Who wants to know that the client is gone."""
        self._admitted = False
        self._active = True
        self._held = False
        self._busy = False
        self._write_paused = False
        self._queue: deque[memoryview] = deque()
        self._pending: asyncio.Future[Later] | None = None
        self._parked: Parked | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername") or ("unknown", 0)
        self.ip, self.peer = address[0], f"{address[0]}:{address[1]}"
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        self._admitted = self.listener.admission.admit(self)
        if self._admitted:
            self.listener.connections.add(self)
        else:
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        target = self.reader.target()
        return self.listener.receive_buffer if target is None else target

    def buffer_updated(self, nbytes: int) -> None:
        self._active = True
        reader = self.reader
        if reader.error is not None:
            return  # nothing good comes after it; it is told once the requests before it are answered
        if reader.target() is None:
            frames = reader.cut(self.listener.receive_buffer[:nbytes])
        else:
            frames = reader.filled(nbytes)
        if self._blocked():
            self._keep(frames)
        else:
            self._answer(frames)
        if self._held:
            self.transport.pause_reading()

    def hold(self) -> None:
        """Admitted later: nothing is answered until `go_on`. What comes first is kept, and stops the reading: a
        transport that has just been made cannot be told to."""
        self._held = True

    def go_on(self) -> None:
        self._held = False
        self._go_on()

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._go_on()

    def close(self) -> None:
        """Closes once what is written has gone out."""
        if not self.closed:
            self.transport.close()

    def close_if_idle(self) -> None:
        """Closes a client of which nothing came for long. One that does not even read gets no time to."""
        if self._active or self._busy:
            self._active = False
            return
        log.debug("connection closed", peer=self.peer, reason="idle longer than connections.max.idle.ms")
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._admitted:
            self.listener.forget(self)
        if self._pending is not None:
            self._pending.cancel()
        if self._parked is not None:
            self._parked.cancel()
        for tell in self.on_close:
            tell(self)

    def _blocked(self) -> bool:
        """Whether the next request has to wait: for an answer, for the peer to read, or for its turn."""
        return self._busy or self._write_paused or self._held or bool(self._queue)

    def _answer(self, frames: Sequence[memoryview]) -> None:
        """Answers the frames that are here, until one must be awaited, the peer must read first, or others have their
        turn."""
        answer, write = self.listener.answer, self.transport.writelines
        unwritten: list[Buffer] = []
        failed: Exception | None = None
        try:
            for number, frame in enumerate(frames, 1):
                buffers = answer(self, frame)
                if isinstance(buffers, list):
                    unwritten += buffers
                    if len(buffers) > 1 or len(unwritten) == COALESCED_ANSWERS:
                        write(unwritten)
                        unwritten = []
                elif buffers is not None:
                    self._await(buffers)
                if self._busy or self._write_paused or number == REQUESTS_PER_TURN:
                    self._keep(frames[number:])
                    break
            else:
                if not self._queue:
                    failed = self.reader.error
        except Exception as error:
            failed = error
        if unwritten:
            write(unwritten)
        if failed is not None:
            self._fail(failed)

    def _await(self, answer: Coroutine[Any, Any, Later] | Parked) -> None:
        self._busy = True
        if isinstance(answer, Parked):
            self._parked = answer
            answer.begin(self._settled)
        else:
            self._pending = asyncio.get_running_loop().create_task(answer)
            self._pending.add_done_callback(self._answered)

    def _keep(self, frames: Sequence[memoryview]) -> None:
        """Copies requests that have to wait, since the shared buffer is about to be reused, and stops reading more. A
        client that waits for its answer, as most do, is read from all the same: so the broker learns when it goes."""
        if not frames:
            return
        self._queue.extend(memoryview(bytearray(frame)) for frame in frames)
        if not self.transport.is_closing():
            self.transport.pause_reading()
        if not (self._busy or self._write_paused):
            asyncio.get_running_loop().call_soon(self._go_on)

    def _fail(self, error: BaseException) -> None:
        """Closes this connection, and says in one line why."""
        self._queue.clear()
        if isinstance(error, ProtocolError):
            log.warning("connection closed", peer=self.peer, reason=error.message, offset=error.offset)
        else:
            log.error("connection closed", peer=self.peer, reason=repr(error), exc_info=error)
        self.transport.close()

    def _answered(self, pending: asyncio.Future[Later]) -> None:
        if not pending.cancelled():
            self._settled(pending.exception() or pending.result())

    def _settled(self, answer: Answer | BaseException) -> None:
        """What was awaited is there, or has to be awaited once more."""
        self._busy = False
        self._pending = self._parked = None
        if self.closed:
            if isinstance(answer, Parked):
                answer.cancel()
            return
        if isinstance(answer, BaseException):
            self._fail(answer)
        elif answer is None or isinstance(answer, list):
            if answer is not None:
                self.transport.writelines(answer)
            self._go_on()
        else:
            self._await(answer)

    def _go_on(self) -> None:
        """Continues with the requests kept by `_keep`, as many as make a turn, then with the socket."""
        if self._held or self.closed or self.transport.is_closing():
            return
        queue = self._queue
        for _ in range(min(len(queue), REQUESTS_PER_TURN)):
            if self._busy or self._write_paused:
                return
            self._answer((queue.popleft(),))
        if self._busy or self._write_paused or self.transport.is_closing():
            return
        if queue:
            asyncio.get_running_loop().call_soon(self._go_on)
        else:
            self.transport.resume_reading()
