"""Carries out visits over sockets, several at once, each in its own way, and reads the broker's answers."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from protocol.api_key import ApiKey
from protocol.codec import decode
from protocol.errors import ProtocolError
from protocol.schema import identity
from tests.fuzz.frames import head_of, request_of, served
from tests.fuzz.plan import Delivery, Visit, wire

PATIENCE_S: Final = 0.15
"""Timeout of the next answer: some requests wait for events that never come."""

MOST_PATIENCE_S: Final = 3.0

PIECE_S: Final = 0.002
AT_ONCE: Final = 64
LARGE_AT_ONCE: Final = 3
LARGE_PATIENCE: Final = 40
"""Factor of the time limit for the answer to a large request."""

OTHER_HOST: Final = "127.0.0.2"
"""The address of a client without rights."""

REMEMBERED: Final = 4000
RESET: Final = struct.pack("ii", 1, 0)
DECODED: Final = 4
"""One of this number of visits has its answers decoded completely."""


class Wrong(AssertionError):
    """An answer that no client could read."""


class Line(asyncio.Protocol):
    """One connection, and its received bytes."""

    def __init__(self, patience: int) -> None:
        """`patience` multiplies the time limit for the next answer."""
        self.patience = patience
        self.received = bytearray()
        self.answers = 0
        self.expected = 0
        self.done = asyncio.get_running_loop().create_future()
        self.frames: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.received += data
        start, end = 0, len(self.received)
        while end - start >= 4:
            (size,) = struct.unpack_from(">i", self.received, start)
            if end - start - 4 < size:
                break
            self.frames.append(bytes(self.received[start + 4 : start + 4 + size]))
            start += 4 + size
        del self.received[:start]
        if len(self.frames) >= self.expected:
            self.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end()

    def end(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


class Sender:
    """Sends visits to one broker, `AT_ONCE` at a time."""

    def __init__(self, bootstrap: str, rate: float = 0, *, are_large: bool = False, has_rights: bool = True) -> None:
        """`rate` is in frames per second; 0 is as fast as possible."""
        self.rate = rate
        self.at_once = LARGE_AT_ONCE if are_large else AT_ONCE
        self.patience = LARGE_PATIENCE if are_large else 1
        self.from_address = None if has_rights else (OTHER_HOST, 0)
        host, _, port = bootstrap.rpartition(":")
        self.address = host, int(port)
        self.frames = 0
        self.answers = 0
        self.answered: Counter[tuple[int, int]] = Counter()
        """Number of sent frames by API and version."""

        self.recent: deque[tuple[int, Visit]] = deque(maxlen=REMEMBERED)
        """The latest visits, with the local port of each."""

        self.wrong: list[str] = []

    async def send_all(self, visits: Iterator[Visit]) -> None:
        """Returns when the last visit has ended."""
        began, before = time.monotonic(), self.frames

        async def keep_pace() -> None:
            """Delays a frame that exceeds the rate."""
            ahead_s = (self.frames - before) / self.rate - (time.monotonic() - began) if self.rate else 0
            if ahead_s > 0:
                await asyncio.sleep(ahead_s)  # the pace is what is asked for

        await asyncio.gather(*(self.work(visits, keep_pace) for _ in range(self.at_once)))

    async def work(self, visits: Iterator[Visit], keep_pace: Callable[[], Awaitable[None]]) -> None:
        for visit in visits:
            await keep_pace()
            with suppress(OSError):
                await self.carry_out(visit)

    async def carry_out(self, visit: Visit) -> None:
        loop = asyncio.get_running_loop()
        transport, line = await loop.create_connection(
            partial(Line, self.patience), *self.address, local_addr=self.from_address
        )
        plug: socket.socket = transport.get_extra_info("socket")
        self.recent.append((plug.getsockname()[1], visit))
        self.frames += len(visit.frames)
        self.answered.update(head[:2] for head in map(head_of, visit.frames) if head is not None)
        line.expected = len(visit.frames)
        try:
            try:
                await DELIVER[visit.delivery](visit, transport, line)
            except RuntimeError:
                if not transport.is_closing():
                    raise  # uvloop raises it where the broker has closed the connection meanwhile
            self.answers += len(line.frames)
            if visit.number % DECODED == 0:
                self.check(visit, line.frames)
        finally:
            transport.abort()

    def check(self, visit: Visit, answers: list[bytes]) -> None:
        """Checks that each answer belongs to a request, in the order of the requests, and can be decoded completely."""
        frames = iter(visit.frames)
        for answer in answers:
            number = struct.unpack_from(">i", answer)[0]
            for data in frames:
                head = head_of(data)
                if head is not None and head.correlation_id == number:
                    self.read(visit, data, answer)
                    break
            else:
                self.wrong.append(f"an answer {number} that was not asked for, or too late\n{visit.shown()}")
                return

    def read(self, visit: Visit, data: bytes, answer: bytes) -> None:
        request = request_of(data)
        if request is None:
            return
        cls = served()[identity(type(request[0])).key].response
        message = identity(cls)
        start = 5 if request[1] in message.flexible and message.key != ApiKey.API_VERSIONS else 4
        try:
            _, end = decode(cls, request[1], memoryview(answer), start)
        except ProtocolError as error:
            self.wrong.append(f"an answer that cannot be read: {error}\n{answer.hex()[:2000]}\n{visit.shown()}")
            return
        if end != len(answer):
            self.wrong.append(f"{len(answer) - end} bytes behind an answer\n{visit.shown()}")

    def visit_of(self, port: int) -> Visit | None:
        """Returns the latest visit from a port."""
        return next((visit for visit_port, visit in reversed(self.recent) if visit_port == port), None)


async def pipelined(visit: Visit, transport: asyncio.Transport, line: Line) -> None:
    transport.write(wire(visit.frames))
    await answers(line)


async def one_by_one(visit: Visit, transport: asyncio.Transport, line: Line) -> None:
    for number, data in enumerate(visit.frames, 1):
        line.expected = number
        line.done = asyncio.get_running_loop().create_future()
        transport.write(wire([data]))
        await answers(line)
        if transport.is_closing() or len(line.frames) < number:
            return


async def cut(visit: Visit, transport: asyncio.Transport, line: Line) -> None:
    data = wire(visit.frames)
    last = len(wire(visit.frames[-1:]))
    transport.write(data[: len(data) - visit.rng.randint(1, last)])
    await asyncio.sleep(visit.rng.choice((0, 0, PIECE_S)))


async def slowly(visit: Visit, transport: asyncio.Transport, line: Line) -> None:
    data = wire(visit.frames[:4])
    line.expected = len(visit.frames[:4])
    step = max(1, len(data) // 12)
    for start in range(0, len(data), step):
        transport.write(data[start : start + step])
        await asyncio.sleep(PIECE_S)
    await answers(line)


async def unread(visit: Visit, transport: asyncio.Transport, line: Line) -> None:
    transport.pause_reading()
    transport.write(wire(visit.frames))
    await asyncio.sleep(visit.rng.choice((0, PIECE_S, 10 * PIECE_S)))
    reset(transport)


async def half_closed(visit: Visit, transport: asyncio.Transport, line: Line) -> None:
    transport.write(wire(visit.frames))
    with suppress(OSError):
        transport.write_eof()
    await answers(line)


async def reset_soon(visit: Visit, transport: asyncio.Transport, line: Line) -> None:
    transport.write(wire(visit.frames))
    for _ in range(visit.rng.randrange(6)):
        await asyncio.sleep(0)
    reset(transport)


async def longer(visit: Visit, transport: asyncio.Transport, line: Line) -> None:
    claimed = visit.rng.choice((1 << 10, 1 << 20, 100 << 20, (1 << 31) - 1, -1, -(1 << 31), 0))
    transport.write(wire(visit.frames) + struct.pack(">i", claimed) + b"x" * visit.rng.choice((0, 1, 1000)))
    await answers(line)


def reset(transport: asyncio.Transport) -> None:
    """Resets the connection: the kernel notifies the other side at once, and drops bytes on their way."""
    plug: socket.socket = transport.get_extra_info("socket")
    with suppress(OSError, ValueError):  # it may be closed already
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


async def answers(line: Line) -> None:
    """Reads answers until all have arrived, the broker has closed, or the timeout is over."""
    for _ in range(int(MOST_PATIENCE_S / PATIENCE_S)):
        before = len(line.frames)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S * line.patience):
                await asyncio.shield(line.done)
        if line.done.done() or len(line.frames) == before:
            return


DELIVER: Final = {
    Delivery.PIPELINED: pipelined,
    Delivery.ONE_BY_ONE: one_by_one,
    Delivery.CUT: cut,
    Delivery.SLOWLY: slowly,
    Delivery.UNREAD: unread,
    Delivery.HALF_CLOSED: half_closed,
    Delivery.RESET: reset_soon,
    Delivery.LONGER: longer,
}
assert set(DELIVER) == set(Delivery)
