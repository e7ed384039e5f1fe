"""One client's connection: asyncio's buffered protocol around protocol.connection, with order and back-pressure.

A connection has one request in flight, as in Apache Kafka, except for Produce (in_flight.py): while an answer is
awaited, or the peer is slow to read, further requests wait and the kernel slows the peer down.

`states.py` has the connection's phases, and the reasons for which it pauses.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, cast

from broker.logging import get_logger
from broker.network.connection_lines import tell_closed
from broker.network.connection_view import Stall
from broker.network.in_flight import InFlight, begun, is_produce
from broker.network.listener import Listener
from broker.network.request_memory import Share
from broker.network.stalls import MIN_PROGRESS_BYTES
from broker.network.states import ANSWER, COMMIT, NO_ANSWERS, PEER, ROOM, THROTTLED, TURN, Phase, ServingState
from broker.network.unread import counted_bytes
from broker.request.context import ClientConnection, Principal
from broker.request.pending import Answer, Parked, Running
from broker.request.turns import Turn
from protocol.addresses import canonical
from protocol.connection import FrameReader, joined
from protocol.types import Buffer

WRITE_HIGH_WATER_BYTES: Final = 32 * 1024
"""Unsent answers beyond which the peer's requests wait. More than this counts as memory of unread answers, so a
connection has this much without a limit; the kernel's buffer comes on top."""

READ_AHEAD_BYTES: Final = 512 * 1024
"""The bytes that a connection reads of a request behind requests that wait for their answers; the rest stays in the
kernel."""

COALESCED_ANSWERS: Final = 32
"""Short answers to requests that came in one read are sent by one system call, which costs more than an append; this is
the most that are sent together, and stays below the high water mark."""

NO_FRAME: Final = memoryview(b"")

logger: Final = get_logger("broker.network.connection")


class ServerConnection(ClientConnection):
    """One client's connection: reads frames, passes each to the listener's `answer`, and writes the answers in order.

    It has the methods of asyncio.BufferedProtocol without inheriting it, which uvloop doesn't require: mypyc can
    compile a class, and its attributes, only if all its base classes are compiled.
    """

    __slots__ = (
        "_active", "_charged_bytes", "_in_flight", "_is_reading", "_partial_bytes", "_queue", "_queued_bytes", "_share",
        "_state", "_unread_bytes", "answered", "listener", "memory", "reader", "stall", "transport",
    )  # fmt: skip

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener.name, listener.finish)
        self.listener = listener
        self.memory = listener.memory
        self.reader = FrameReader(listener.max_request_bytes, spares=self.memory.spares)
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)  # set before anything else is called
        self.stall: Stall | None = None
        self._unread_bytes = 0
        """The unsent bytes at the last check for idle connections."""
        self.answered = 0
        """Requests that were answered while the connection held memory."""
        self._active = True
        self._state = ServingState()
        self._is_reading = True
        self._queue: deque[memoryview] = deque()
        self._queued_bytes = 0
        self._partial_bytes = 0
        self._charged_bytes = 0
        self._share: Share | None = None
        self._in_flight = InFlight()

    @property
    def kept_bytes(self) -> int:
        """The bytes that the connection holds of unanswered requests."""
        return self._queued_bytes + self._in_flight.held_bytes + self.reader.held_bytes

    @property
    def is_ending(self) -> bool:
        """True if the connection is closing and unsent answers remain."""
        return self._state.has_ended

    @property
    def is_read_from(self) -> bool:
        return self._is_reading

    @property
    def waits_for_memory(self) -> bool:
        return self.memory.waits(self)

    @property
    def holds_scarce_memory(self) -> bool:
        """True if it holds requests while memory is short, and waits for an answer or for its peer."""
        return self._charged_bytes > 0 and not self._state.answers and self.memory.is_short

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername") or ("unknown", 0)
        self.ip, self.peer = canonical(address[0]), f"{address[0]}:{address[1]}"
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        if self.listener.admission.admit(self):
            if self._state.phase is Phase.NEW:
                self._state.enter(Phase.OPEN)
            self._share = self.memory.join(self.ip)
            self.listener.connections.add(self)
            if self.listener.unauthenticated is not None:
                self.reader.max_frame_bytes = self.listener.unauthenticated.add(self)
        else:
            self._state.enter(Phase.CLOSING)
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        target = self.reader.target()
        return self.memory.receive_buffer if target is None else target

    def buffer_updated(self, nbytes: int) -> None:
        self._active = True
        self.received_ns = self.listener.clock.monotonic_ns()
        reader = self.reader
        state = self._state
        if state.has_ended or reader.error is not None:
            return  # nothing valid comes after an error; it is reported once the requests before it are answered
        if reader.target() is None:
            memory = self.memory
            frames = reader.cut(memory.receive_buffer[:nbytes], memory.is_short)
        else:
            frames = reader.filled(nbytes)
        if state.reasons & (NO_ANSWERS | TURN):
            self._store(frames)
        else:
            self._answer(frames)
        if reader.held_bytes != self._partial_bytes or reader.is_full:
            self._account()

    def authenticated(self, principal: Principal) -> None:
        """Ends the limits of unauthenticated connections: the client has proven its identity."""
        self.principal = principal
        self.reader.max_frame_bytes = self.listener.max_request_bytes
        if self.listener.unauthenticated is not None:
            self.listener.unauthenticated.discard(self)

    def wait_for_place(self) -> None:
        """Answers nothing until `admitted`. The first bytes that come are stored and pause reading: a transport can't
        be paused in `connection_made`."""
        self._state.enter(Phase.WAITING)

    def admitted(self) -> None:
        """Starts a connection that waited for a place, unless it has ended meanwhile."""
        if self._state.phase is Phase.WAITING:
            self._state.enter(Phase.OPEN)
            self._continue()

    def _resume(self, reason: int) -> None:
        """Removes a pause reason, and continues."""
        self._state.reasons &= ~reason
        self._continue()

    def throttle(self, delay_ms: int) -> None:
        """Reads and answers nothing for `delay_ms`; answers that are written are still sent."""
        if self._state.has_ended or self._state.reasons & THROTTLED:
            return
        self._state.reasons |= THROTTLED
        self._update_reading()
        self.listener.clock.call_after(delay_ms, lambda: self._resume(THROTTLED))

    def pause_writing(self) -> None:
        self._state.reasons |= PEER

    def resume_writing(self) -> None:
        self.listener.unread.discard(self)
        self._resume(PEER)

    def close(self) -> None:
        """Closes once the written bytes are sent."""
        if not self._state.has_ended:
            self._end(Phase.CLOSING)
            self.transport.close()

    def close_if_idle(self) -> None:
        """Closes a connection on which little was received and sent for a long time. An incomplete request has its own
        timeout. If the peer doesn't read, the connection is closed without waiting for unsent answers."""
        unread_bytes, before = self.transport.get_write_buffer_size(), self._unread_bytes
        self._unread_bytes = unread_bytes
        if self._active or self._state.reasons & (ANSWER | COMMIT) or before - unread_bytes >= MIN_PROGRESS_BYTES:
            self._active = False
            return
        logger.debug("connection closed", peer=self.peer, reason="idle longer than connections.max.idle.ms")
        if unread_bytes:
            self.cut_off()
        else:
            self.close()

    def cut_off(self) -> None:
        """Closes without waiting for the written bytes to be sent."""
        if self._state.phase is not Phase.CLOSED:
            self._end(Phase.CLOSING)
            self.transport.abort()

    def linger(self) -> None:
        """Reads and answers nothing more, and leaves the socket open."""
        self._end(Phase.LINGERING)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._end(Phase.CLOSED)
        self.listener.unread.discard(self)
        if self.listener.unauthenticated is not None:
            self.listener.unauthenticated.discard(self)
        if self._share is not None:  # it was admitted
            self._share = None
            self.memory.leave(self.ip, self)
            self.listener.forget(self, exc)
        tell_closed(self)

    def _end(self, phase: Phase) -> None:
        """Stops reading, answering and writing; discards stored requests and cancels the requests in flight."""
        self._state.enter(phase)
        self._queue.clear()
        self._queued_bytes = 0
        self.reader.drop()
        self._in_flight.cancel()
        self._account()

    def _answer(self, frames: Sequence[memoryview]) -> None:
        """Answers these frames until an answer must be awaited, the peer must read first, or the turn is over."""
        answer = self.listener.answer
        unwritten: list[Buffer] = []
        failed: Exception | None = None
        count = len(frames)
        turn = Turn(self.listener.clock) if count > 1 else None
        try:
            for number, frame in enumerate(frames, 1):
                if self._hold_back(frame):
                    self._store(frames[number - 1 :])
                    break
                buffers = self._begin_behind(frame) if self._state.reasons & COMMIT else answer(self, frame)
                if isinstance(buffers, list):
                    unwritten += buffers
                    if len(buffers) > 1 or len(unwritten) == COALESCED_ANSWERS:
                        self._write(unwritten)
                        unwritten = []
                elif buffers is not None:
                    self._await(buffers, frame)
                if not self._state.answers or (turn is not None and number < count and turn.is_over(number)):
                    self._store(frames[number:])
                    break
            else:
                if not self._queue and not self._state.reasons & COMMIT:
                    failed = self.reader.error
        except Exception as error:
            failed = error
        if unwritten and not self.closed:
            self._write(unwritten)
        if failed is not None:
            self.fail(failed)

    def _write(self, answers: list[Buffer]) -> None:
        self.transport.writelines(joined(answers))
        if self._state.reasons & PEER:  # the peer has not read them at once
            self.listener.unread.add(self, counted_bytes(answers))

    def _await(self, answer: Parked | Running, frame: memoryview = NO_FRAME) -> None:
        """Awaits an answer. If the connection has ended meanwhile, cancels it."""
        if self._state.has_ended:
            answer.cancel()
            return
        self._in_flight.begin(answer, frame)
        self._note_in_flight()
        answer.begin(self._write_awaited)

    def _note_in_flight(self) -> None:
        self._state.reasons = self._in_flight.pause_reasons(self._state.reasons)
        if self._in_flight.held_bytes:
            self._account()

    def _hold_back(self, frame: memoryview) -> bool:
        """Makes any request but Produce wait for the requests in flight. Returns True if this request waits."""
        if self._state.reasons & COMMIT and not is_produce(frame):
            self._state.reasons ^= COMMIT | ANSWER
        return bool(self._state.reasons & ANSWER)

    def _begin_behind(self, frame: memoryview) -> Answer:
        """Begins a Produce behind the requests in flight, which are answered first."""
        self._in_flight.add(begun(self.listener.answer, self, frame), frame)
        self._note_in_flight()
        return None

    def _store(self, frames: Sequence[memoryview]) -> None:
        """Stores requests for later and stops reading. Frames in the shared buffer, which the next read overwrites, are
        copied."""
        if self._state.has_ended:
            return
        shared = self.memory.receive_buffer.obj
        for frame in frames:
            self._queue.append(memoryview(bytearray(frame)) if frame.obj is shared else frame)
            self._queued_bytes += len(frame)
        if self._queue:
            self._state.reasons |= TURN
            if self._state.answers:
                asyncio.get_running_loop().call_soon(self._continue)
            self._account()
        self._update_reading()

    def ask_for_room(self) -> None:
        """Tries again to get memory for the next frame."""
        if not self._state.has_ended:
            self._account()

    def _account(self) -> None:
        """Updates the memory counts: asks for memory for an incomplete frame, and reports the bytes held."""
        reader, memory = self.reader, self.memory
        if reader.is_full:
            self._give_room()
        elif memory.first is self and not reader.held_bytes:
            memory.pass_on()
        self._partial_bytes = reader.held_bytes
        more_bytes = self._queued_bytes + self._in_flight.held_bytes + self._partial_bytes - self._charged_bytes
        if more_bytes and self._share is not None:
            self._charged_bytes += more_bytes
            memory.hold(self._share, more_bytes)

    def _give_room(self) -> None:
        reader = self.reader
        is_ahead = self._state.reasons & (NO_ANSWERS | TURN) and reader.held_bytes >= READ_AHEAD_BYTES
        if not is_ahead and self._share is not None and self.memory.grants(self, self._share, reader.growth_bytes):
            reader.grow()
            self._state.reasons &= ~ROOM
        else:
            self._state.reasons |= ROOM
        self._update_reading()

    def _update_reading(self) -> None:
        """Pauses or resumes reading from the socket, according to the pause reasons."""
        reads = self._state.reads
        if reads == self._is_reading or self._state.has_ended:
            return
        self._is_reading = reads
        if reads:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def fail(self, error: BaseException) -> None:
        """Closes this connection and logs the reason in one line."""
        if self._state.has_ended:
            return
        self.listener.lines.failed(self, error)
        self.close()

    def _write_awaited(self, answer: Answer | BaseException) -> None:
        """Writes an awaited answer; a request that must wait again is awaited again."""
        if self._state.has_ended:
            if isinstance(answer, (Parked, Running)):
                answer.cancel()
            return
        if self._charged_bytes:
            self.answered += 1
        if isinstance(answer, BaseException):
            self.fail(answer)
        elif answer is None or isinstance(answer, list):
            written, failed = self._in_flight.answered(answer)
            if written:
                self._write(written)
            if self._in_flight.first is None:
                self._state.reasons &= ~(ANSWER | COMMIT)
            else:
                self._await(self._in_flight.first)
            if failed is not None:
                self.fail(failed)
            elif self.refused_because:
                self.listener.linger(self, self.refused_because)
            else:
                self._continue()
        else:
            self._await(answer)

    def _continue(self) -> None:
        """Continues with the requests stored by `_store`, as many as one turn allows, then with the socket."""
        self._answer_queued()
        if self._charged_bytes:
            self._account()

    def _answer_queued(self) -> None:
        queue = self._queue
        turn, number = Turn(self.listener.clock), 0
        while queue and not (number and turn.is_over(number)):
            if not self._state.answers or self._hold_back(queue[0]):
                return
            number += 1
            frame = queue.popleft()
            self.begun_ns = self.listener.clock.monotonic_ns()
            self._queued_bytes -= len(frame)
            self._answer((frame,))
        if not self._state.answers:
            return
        if queue:
            asyncio.get_running_loop().call_soon(self._continue)
        elif self.reader.error is not None:
            if not self._state.reasons & COMMIT:
                self.fail(self.reader.error)
        else:
            self._state.reasons &= ~TURN
            self._update_reading()
