"""Finds connections that hold memory and bring nothing: looked at at intervals, closed when they stay so.

Kafka leaves them until connections.max.idle.ms, which a byte now and then puts off for ever.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, Protocol

from broker.logging import get_logger
from broker.network.connection_lines import ConnectionLines, Told
from broker.network.request_memory import Holder, RequestMemory
from protocol.connection import FrameReader

log: Final = get_logger("broker.network.connection")

MIN_PROGRESS_BYTES: Final = 64 * 1024
"""The bytes that an unfinished request must bring within odradek.request.stall.timeout.ms, or the rest of it: two
kilobytes a second by default, which the thinnest line carries. A client that brings that much pays for the memory that
it takes."""

CHECKS: Final = 4
"""Looks at each connection within that time, so that one is closed at most a quarter of it too late."""

ARRIVES, WAITS_FOR_ROOM, HOLDS, ENDS = range(4)
"""The reasons for which a connection holds memory: its request has come in part; the rest gets no room; requests wait
to be answered, while memory is short; it is closed, and the peer does not take its last answers."""

REASONS: Final = {
    ARRIVES: "a request of {size} bytes brought {arrived}, and too few of them",
    WAITS_FOR_ROOM: "a request of {size} bytes got no room behind its first {arrived}, since other requests have it all"
    " (queued.max.request.bytes),",
    HOLDS: "its requests wait for their answers while memory is short (queued.max.request.bytes), and did not get any",
    ENDS: "it was closed, and its peer did not take the last answers",
}


class Stall(NamedTuple):
    """The state of a connection when it was looked at, and since when it brought no more."""

    kind: int
    frame: int
    """Which of its frames."""
    moved_bytes: int
    since_ms: int


class Suspect(Holder, Told, Protocol):
    """A connection that may have stalled."""

    @property
    def reader(self) -> FrameReader: ...

    @property
    def memory(self) -> RequestMemory: ...

    @property
    def transport(self) -> asyncio.Transport: ...

    stall: Stall | None
    """The stall of the last look."""

    @property
    def answered(self) -> int: ...

    @property
    def is_ending(self) -> bool: ...

    @property
    def is_read_from(self) -> bool: ...

    @property
    def waits_to_be_answered(self) -> bool: ...

    def cut_off(self) -> None:
        """Closes without waiting for what is written to go out."""


def stall_of(connection: Suspect, now_ms: int) -> Stall | None:
    """Returns the stall that a connection may be in; None while it holds nothing that others lack."""
    reader = connection.reader
    if connection.is_ending:
        return Stall(ENDS, 0, -connection.transport.get_write_buffer_size(), now_ms)
    if connection.memory.waits(connection):
        return Stall(WAITS_FOR_ROOM, reader.frames_begun, 0, now_ms)
    if connection.waits_to_be_answered and connection.memory.is_short:
        return Stall(HOLDS, connection.answered, 0, now_ms)
    if reader.held_bytes and connection.is_read_from:
        return Stall(ARRIVES, reader.frames_begun, reader.arrived_bytes, now_ms)
    return None


def looked_at(connection: Suspect, now_ms: int) -> Stall | None:
    """Returns its stall, which began at the earlier look if it brought nothing since."""
    stall, before = stall_of(connection, now_ms), connection.stall
    if stall is None or before is None or stall[:2] != before[:2]:
        return stall
    return stall if stall.moved_bytes >= before.moved_bytes + MIN_PROGRESS_BYTES else before


def reason(connection: Suspect, stall: Stall, timeout_ms: int) -> str:
    """Returns why it is closed, for the log."""
    reader = connection.reader
    text = REASONS[stall.kind].format(size=reader.announced_bytes, arrived=reader.arrived_bytes)
    return f"{text} within {timeout_ms} ms (odradek.request.stall.timeout.ms)"


def close_if_stalled(connection: Suspect, lines: ConnectionLines, now_ms: int, timeout_ms: int) -> None:
    """Closes one that holds memory and has brought nothing for so long; cuts it off if it closes already."""
    connection.stall = stall = looked_at(connection, now_ms)
    if stall is None or now_ms - stall.since_ms < timeout_ms:
        return
    if connection.is_ending:
        log.debug("connection closed", peer=connection.peer, reason=reason(connection, stall, timeout_ms))
    else:
        lines.closed(connection, reason(connection, stall, timeout_ms))
    connection.cut_off()
