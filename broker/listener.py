"""Sockets: asyncio's buffered protocol around protocol.connection, with order, back-pressure and limits.

All connections of a listener read into one buffer, since a read is handled before the next one starts; an idle
connection therefore holds no buffer at all. A connection has one request at work at a time, as Apache Kafka's does:
while an answer is awaited, or the peer is slow to read, further requests wait and the kernel slows the peer down.

What a connection waits for is one set of reasons. The last of them, ENDED, never goes: whatever is called later, an
answer, a timer, a turn, the transport, finds it there and does nothing.
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

ANSWER: Final = 1
"""Its request is at work: parked, or a coroutine."""
PEER: Final = 2
"""The peer has answers to take first."""
PLACE: Final = 4
"""It has not been admitted yet."""
TURN: Final = 8
"""Requests that were read before are answered first."""
ENDED: Final = 16
"""It closes, or is closed."""
NO_ANSWERS: Final = ANSWER | PEER | PLACE | ENDED
"""While it waits for any of these it answers nothing."""
NO_READING: Final = TURN | PLACE
"""While it waits for any of these its socket is not read from. A client that waits for its answer, as most do, is: so
the broker learns when it goes."""

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
        "_active", "_admitted", "_is_reading", "_parked", "_pending", "_queue", "_queued_bytes", "_waits",
        "client_software", "closed", "ip", "listener", "on_close", "peer", "reader", "transport",
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
        self._waits = 0
        self._is_reading = True
        self._queue: deque[memoryview] = deque()
        self._queued_bytes = 0
        self._pending: asyncio.Future[Later] | None = None
        self._parked: Parked | None = None

    @property
    def kept_bytes(self) -> int:
        """What it holds of requests that are not answered."""
        return self._queued_bytes + self.reader.held_bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername") or ("unknown", 0)
        self.ip, self.peer = address[0], f"{address[0]}:{address[1]}"
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        self._admitted = self.listener.admission.admit(self)
        if self._admitted:
            self.listener.connections.add(self)
        else:
            self._waits = ENDED
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        target = self.reader.target()
        return self.listener.receive_buffer if target is None else target

    def buffer_updated(self, nbytes: int) -> None:
        self._active = True
        reader = self.reader
        waits = self._waits
        if waits & ENDED or reader.error is not None:
            return  # nothing good comes after an error; it is told once the requests before it are answered
        if reader.target() is None:
            frames = reader.cut(self.listener.receive_buffer[:nbytes])
        else:
            frames = reader.filled(nbytes)
        if waits & (NO_ANSWERS | TURN):
            self._keep(frames)
        else:
            self._answer(frames)

    def hold(self) -> None:
        """Admitted later: nothing is answered until `go_on`. What comes first is kept, and stops the reading: a
        transport that has just been made cannot be told to."""
        self._waits |= PLACE

    def go_on(self) -> None:
        """It has its place."""
        self._waits &= ~PLACE
        self._go_on()

    def pause_writing(self) -> None:
        self._waits |= PEER

    def resume_writing(self) -> None:
        self._waits &= ~PEER
        self._go_on()

    def close(self) -> None:
        """Closes once what is written has gone out."""
        if not self._waits & ENDED:
            self._end()
            self.transport.close()

    def close_if_idle(self) -> None:
        """Closes a client of which nothing came for long. One that does not even read gets no time to."""
        if self._active or self._waits & ANSWER:
            self._active = False
            return
        log.debug("connection closed", peer=self.peer, reason="idle longer than connections.max.idle.ms")
        if self.transport.get_write_buffer_size():
            self._end()
            self.transport.abort()
        else:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._end()
        if self._admitted:
            self._admitted = False
            self.listener.forget(self)
        on_close, self.on_close = self.on_close, []
        for tell in on_close:
            try:
                tell(self)
            except Exception as error:  # the others want to know as well
                log.error("the end of a connection was not dealt with", peer=self.peer, exc_info=error)

    def _end(self) -> None:
        """From here on nothing is read, answered or written; what was kept goes, and nobody works for it any more."""
        self._waits |= ENDED
        self._queue.clear()
        self._queued_bytes = 0
        self.reader.drop()
        pending, parked = self._pending, self._parked
        self._pending = self._parked = None
        if pending is not None:
            pending.cancel()
        if parked is not None:
            parked.cancel()

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
                if self._waits & NO_ANSWERS or number == REQUESTS_PER_TURN:
                    self._keep(frames[number:])
                    break
            else:
                if not self._queue:
                    failed = self.reader.error
        except Exception as error:
            failed = error
        if unwritten and not self.closed:
            write(unwritten)
        if failed is not None:
            self.fail(failed)

    def _await(self, answer: Coroutine[Any, Any, Later] | Parked) -> None:
        """Goes on when the answer is there. A connection that has ended meanwhile awaits none."""
        if self._waits & ENDED:
            forget(answer)
            return
        self._waits |= ANSWER
        if isinstance(answer, Parked):
            self._parked = answer
            answer.begin(self._settled)
        else:
            self._pending = asyncio.get_running_loop().create_task(answer)
            self._pending.add_done_callback(self._answered)

    def _keep(self, frames: Sequence[memoryview]) -> None:
        """Copies requests that have to wait, since the shared buffer is about to be reused, and stops reading more."""
        if self._waits & ENDED:
            return
        for frame in frames:
            self._queue.append(memoryview(bytearray(frame)))
            self._queued_bytes += len(frame)
        if self._queue:
            self._waits |= TURN
            if not self._waits & NO_ANSWERS:
                asyncio.get_running_loop().call_soon(self._go_on)
        self._read_or_not()

    def _read_or_not(self) -> None:
        """Reads from the socket, or stops, as what it waits for says."""
        reads = not self._waits & NO_READING
        if reads == self._is_reading or self._waits & ENDED:
            return
        self._is_reading = reads
        if reads:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def fail(self, error: BaseException) -> None:
        """Closes this connection, and says in one line why."""
        if self._waits & ENDED:
            return
        if isinstance(error, ProtocolError):
            log.warning("connection closed", peer=self.peer, reason=error.message, offset=error.offset)
        else:
            log.error("connection closed", peer=self.peer, reason=repr(error), exc_info=error)
        self.close()

    def _answered(self, pending: asyncio.Future[Later]) -> None:
        if not pending.cancelled():
            self._settled(pending.exception() or pending.result())
        elif pending is self._pending:  # not by us: the handler awaited what somebody else gave up
            self._settled(ProtocolError("its request was given up", offset=0))

    def _settled(self, answer: Answer | BaseException) -> None:
        """What was awaited is there, or has to be awaited once more."""
        if self._waits & ENDED:
            forget(answer)
            return
        self._waits &= ~ANSWER
        self._pending = self._parked = None
        if isinstance(answer, BaseException):
            self.fail(answer)
        elif answer is None or isinstance(answer, list):
            if answer is not None:
                self.transport.writelines(answer)
            self._go_on()
        else:
            self._await(answer)

    def _go_on(self) -> None:
        """Continues with the requests kept by `_keep`, as many as make a turn, then with the socket."""
        queue = self._queue
        for _ in range(REQUESTS_PER_TURN):
            if self._waits & NO_ANSWERS:
                return
            if not queue:
                break
            frame = queue.popleft()
            self._queued_bytes -= len(frame)
            self._answer((frame,))
        if self._waits & NO_ANSWERS:
            return
        if queue:
            asyncio.get_running_loop().call_soon(self._go_on)
        elif self.reader.error is not None:
            self.fail(self.reader.error)
        else:
            self._waits &= ~TURN
            self._read_or_not()


def forget(answer: Answer | BaseException) -> None:
    """Nobody is there any more to take it."""
    if isinstance(answer, Parked):
        answer.cancel()
    elif isinstance(answer, Coroutine):
        answer.close()
