"""One client's connection: asyncio's buffered protocol around protocol.connection, with order and back-pressure.

A connection has one request at work at a time, as Apache Kafka's does, but for Produce (at_work.py): while an answer is
awaited, or the peer is slow to read, further requests wait and the kernel slows the peer down.

What a connection waits for is one set of reasons. The last of them, ENDED, never goes: whatever is called later, an
answer, a timer, a turn, the transport, finds it there and does nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, cast

from broker.exchange.context import ClientConnection, Principal
from broker.exchange.pending import Answer, Parked, Running
from broker.exchange.turns import Turn
from broker.logging import get_logger
from broker.network.at_work import AtWork, begun, is_produce
from broker.network.connection_lines import tell_closed
from broker.network.listener import Listener
from broker.network.request_memory import Share
from broker.network.stalls import MIN_PROGRESS_BYTES, Stall
from broker.network.unread import counted_bytes, joined
from broker.network.waits import ANSWER, COMMIT, ENDED, NO_ANSWERS, NO_READING, PEER, PLACE, ROOM, THROTTLED, TURN
from protocol.addresses import canonical
from protocol.connection import FrameReader
from protocol.types import Buffer

WRITE_HIGH_WATER_BYTES: Final = 32 * 1024
"""Answers not yet taken by the peer beyond which its requests wait. What is more counts as memory of unread answers, so
this is what a connection has for nothing; it is on top of what the kernel's buffer takes."""

READ_AHEAD_BYTES: Final = 512 * 1024
"""The bytes that a connection holds of a request behind those that wait for their answers; the kernel has the rest."""

COALESCED_ANSWERS: Final = 32
"""Short answers to requests that came in one read go out by one system call, which costs more than an append; so many
at once, which stay below the high water mark."""

NO_FRAME: Final = memoryview(b"")

log: Final = get_logger("broker.network.connection")


class ServerConnection(ClientConnection):
    """One client: reads frames, hands each to the listener's `answer`, writes what comes back, in order.

    An asyncio.BufferedProtocol by its methods. It is none by its class, which uvloop does not ask for: a class that has
    none above it but of ours can be compiled, its attributes with it.
    """

    __slots__ = (
        "_active", "_admitted", "_at_work", "_charged_bytes", "_is_reading", "_partial_bytes", "_queue",
        "_queued_bytes", "_share", "_unread_bytes", "_waits", "answered", "listener", "memory", "reader", "stall",
        "transport",
    )  # fmt: skip

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener.name, listener.finish)
        self.listener = listener
        self.memory = listener.memory
        self.reader = FrameReader(listener.max_request_bytes)
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)  # set before anything else is called
        self.stall: Stall | None = None
        self._unread_bytes = 0
        """The bytes that its peer had not taken at the last look."""
        self.answered = 0
        """Requests that were answered while it held memory."""
        self._admitted = False
        self._active = True
        self._waits = 0
        self._is_reading = True
        self._queue: deque[memoryview] = deque()
        self._queued_bytes = 0
        self._partial_bytes = 0
        self._charged_bytes = 0
        self._share: Share | None = None
        self._at_work = AtWork()

    @property
    def kept_bytes(self) -> int:
        """The bytes that it holds of unanswered requests."""
        return self._queued_bytes + self._at_work.held_bytes + self.reader.held_bytes

    @property
    def is_ending(self) -> bool:
        """It closes, and what was written has not gone out."""
        return bool(self._waits & ENDED)

    @property
    def is_read_from(self) -> bool:
        return self._is_reading

    @property
    def waits_to_be_answered(self) -> bool:
        """It holds requests, and waits for an answer or for its peer."""
        return self._charged_bytes > 0 and bool(self._waits & NO_ANSWERS)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername") or ("unknown", 0)
        self.ip, self.peer = canonical(address[0]), f"{address[0]}:{address[1]}"
        self.transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        self._admitted = self.listener.admission.admit(self)
        if self._admitted:
            self.listener.connections.add(self)
            if self.listener.strangers is not None:
                self.reader.max_frame_bytes = self.listener.strangers.take_in(self)
            self._share = self.memory.join(self.ip)
        else:
            self._waits = ENDED
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        target = self.reader.target()
        return self.memory.receive_buffer if target is None else target

    def buffer_updated(self, nbytes: int) -> None:
        self._active = True
        self.received_ns = self.listener.clock.monotonic_ns()
        reader = self.reader
        waits = self._waits
        if waits & ENDED or reader.error is not None:
            return  # nothing good comes after an error; it is told once the requests before it are answered
        if reader.target() is None:
            memory = self.memory
            frames = reader.cut(memory.receive_buffer[:nbytes], memory.is_short)
        else:
            frames = reader.filled(nbytes)
        if waits & (NO_ANSWERS | TURN):
            self._keep(frames)
        else:
            self._answer(frames)
        if reader.held_bytes != self._partial_bytes or reader.is_full:
            self._account()

    def authenticated(self, principal: Principal) -> None:
        """Its client has proven who it is: the limits of strangers do not hold any more."""
        self.principal = principal
        self.reader.max_frame_bytes = self.listener.max_request_bytes
        if self.listener.strangers is not None:
            self.listener.strangers.let_go(self)

    def hold(self) -> None:
        """Admitted later: nothing is answered until `go_on`. What comes first is kept, and stops the reading: a
        transport that has just been made cannot be told to."""
        self._waits |= PLACE

    def go_on(self, waited_for: int = PLACE) -> None:
        """It has its place, or what else it waited for."""
        self._waits &= ~waited_for
        self._go_on()

    def throttle(self, delay_ms: int) -> None:
        """Reads and answers nothing more for so long; what is answered already goes out."""
        if self._waits & (ENDED | THROTTLED):
            return
        self._waits |= THROTTLED
        self._read_or_not()
        self.listener.clock.call_after(delay_ms, lambda: self.go_on(THROTTLED))

    def pause_writing(self) -> None:
        self._waits |= PEER

    def resume_writing(self) -> None:
        self._waits &= ~PEER
        self.listener.unread.let_go(self)
        self._go_on()

    def close(self) -> None:
        """Closes once what is written has gone out."""
        if not self._waits & ENDED:
            self.end()
            self.transport.close()

    def close_if_idle(self) -> None:
        """Closes a client of which nothing came for long, and that took little; what it sends in part has a time of its
        own. One that does not even read gets no time to."""
        unread_bytes, before = self.transport.get_write_buffer_size(), self._unread_bytes
        self._unread_bytes = unread_bytes
        if self._active or self._waits & (ANSWER | COMMIT) or before - unread_bytes >= MIN_PROGRESS_BYTES:
            self._active = False
            return
        log.debug("connection closed", peer=self.peer, reason="idle longer than connections.max.idle.ms")
        if unread_bytes:
            self.cut_off()
        else:
            self.close()

    def cut_off(self) -> None:
        """Closes without waiting for what is written to go out."""
        self.end()
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.end()
        self.listener.unread.let_go(self)
        if self.listener.strangers is not None:
            self.listener.strangers.let_go(self)
        if self._admitted:
            self._admitted = False
            self.memory.leave(self.ip, self)
            self.listener.forget(self, exc)
        tell_closed(self)

    def end(self) -> None:
        """From here on nothing is read, answered or written; what was kept goes, and nobody works for it any more."""
        self._waits |= ENDED
        self._queue.clear()
        self._queued_bytes = 0
        self.reader.drop()
        self._at_work.cancel()
        self._account()

    def _answer(self, frames: Sequence[memoryview]) -> None:
        """Answers the frames that are here, until one must be awaited, the peer must read first, or others have their
        turn."""
        answer = self.listener.answer
        unwritten: list[Buffer] = []
        failed: Exception | None = None
        count = len(frames)
        turn = Turn(self.listener.clock) if count > 1 else None
        try:
            for number, frame in enumerate(frames, 1):
                if not self._admits(frame):
                    self._keep(frames[number - 1 :])
                    break
                buffers = self._begin_behind(frame) if self._waits & COMMIT else answer(self, frame)
                if isinstance(buffers, list):
                    unwritten += buffers
                    if len(buffers) > 1 or len(unwritten) == COALESCED_ANSWERS:
                        self._write(unwritten)
                        unwritten = []
                elif buffers is not None:
                    self._await(buffers, frame)
                if self._waits & NO_ANSWERS or (turn is not None and number < count and turn.is_over(number)):
                    self._keep(frames[number:])
                    break
            else:
                if not self._queue and not self._waits & COMMIT:
                    failed = self.reader.error
        except Exception as error:
            failed = error
        if unwritten and not self.closed:
            self._write(unwritten)
        if failed is not None:
            self.fail(failed)

    def _write(self, answers: list[Buffer]) -> None:
        self.transport.writelines(joined(answers))
        if self._waits & PEER:  # it has not taken them at once
            self.listener.unread.hold(self, counted_bytes(answers))

    def _await(self, answer: Parked | Running, frame: memoryview = NO_FRAME) -> None:
        """Goes on when the answer is there. A connection that has ended meanwhile awaits none."""
        if self._waits & ENDED:
            answer.cancel()
            return
        self._at_work.begin(answer, frame)
        self._note_at_work()
        answer.begin(self._settled)

    def _note_at_work(self) -> None:
        self._waits = self._at_work.waits(self._waits)
        if self._at_work.held_bytes:
            self._account()

    def _admits(self, frame: memoryview) -> bool:
        """True where this request may begin. What is no Produce waits for those that are at work."""
        if self._waits & COMMIT and not is_produce(frame):
            self._waits ^= COMMIT | ANSWER
        return not self._waits & ANSWER

    def _begin_behind(self, frame: memoryview) -> Answer:
        """Begins a Produce behind those that are at work, which have their answers first."""
        self._at_work.add(begun(self.listener.answer, self, frame), frame)
        self._note_at_work()
        return None

    def _keep(self, frames: Sequence[memoryview]) -> None:
        """Has requests wait, and stops reading more; what lies in the shared buffer, which is about to be reused, is
        copied."""
        if self._waits & ENDED:
            return
        shared = self.memory.receive_buffer.obj
        for frame in frames:
            self._queue.append(memoryview(bytearray(frame)) if frame.obj is shared else frame)
            self._queued_bytes += len(frame)
        if self._queue:
            self._waits |= TURN
            if not self._waits & NO_ANSWERS:
                asyncio.get_running_loop().call_soon(self._go_on)
            self._account()
        self._read_or_not()

    def ask_for_room(self) -> None:
        """There may be room now."""
        if not self._waits & ENDED:
            self._account()

    def _account(self) -> None:
        """Accounts for the bytes that it holds: gives the frame that is not whole its room, and reports how much is
        held now."""
        reader, memory = self.reader, self.memory
        if reader.is_full:
            self._give_room()
        elif memory.first is self and not reader.held_bytes:
            memory.pass_on()
        self._partial_bytes = reader.held_bytes
        more_bytes = self._queued_bytes + self._at_work.held_bytes + self._partial_bytes - self._charged_bytes
        if more_bytes and self._share is not None:
            self._charged_bytes += more_bytes
            memory.hold(self._share, more_bytes)

    def _give_room(self) -> None:
        reader = self.reader
        is_ahead = self._waits & (NO_ANSWERS | TURN) and reader.held_bytes >= READ_AHEAD_BYTES
        if not is_ahead and self._share is not None and self.memory.grants(self, self._share, reader.growth_bytes):
            reader.grow()
            self._waits &= ~ROOM
        else:
            self._waits |= ROOM
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
        self.listener.lines.failed(self, error)
        self.close()

    def _settled(self, answer: Answer | BaseException) -> None:
        """Takes an awaited answer, or awaits it once more."""
        if self._waits & ENDED:
            if isinstance(answer, (Parked, Running)):
                answer.cancel()
            return
        if self._charged_bytes:
            self.answered += 1
        if isinstance(answer, BaseException):
            self.fail(answer)
        elif answer is None or isinstance(answer, list):
            written, failed = self._at_work.answered(answer)
            if written:
                self._write(written)
            if self._at_work.first is None:
                self._waits &= ~(ANSWER | COMMIT)
            else:
                self._await(self._at_work.first)
            if failed is not None:
                self.fail(failed)
            elif self.refused_because:
                self.listener.dismiss(self, self.refused_because)
            else:
                self._go_on()
        else:
            self._await(answer)

    def _go_on(self) -> None:
        """Continues with the requests kept by `_keep`, as many as make a turn, then with the socket."""
        self._answer_queued()
        if self._charged_bytes:
            self._account()

    def _answer_queued(self) -> None:
        queue = self._queue
        turn, number = Turn(self.listener.clock), 0
        while queue and not (number and turn.is_over(number)):
            if self._waits & NO_ANSWERS or not self._admits(queue[0]):
                return
            number += 1
            frame = queue.popleft()
            self.begun_ns = self.listener.clock.monotonic_ns()
            self._queued_bytes -= len(frame)
            self._answer((frame,))
        if self._waits & NO_ANSWERS:
            return
        if queue:
            asyncio.get_running_loop().call_soon(self._go_on)
        elif self.reader.error is not None:
            if not self._waits & COMMIT:
                self.fail(self.reader.error)
        else:
            self._waits &= ~TURN
            self._read_or_not()
