"""Finds connections that hold memory without progress: they are checked at intervals and closed if they stay stalled.

Kafka leaves such a connection until connections.max.idle.ms, which a client can postpone forever by sending single
bytes.
"""

from __future__ import annotations

from typing import Final

from broker.logging import get_logger
from broker.network.connection_lines import ConnectionLines
from broker.network.connection_view import ConnectionView, Stall

logger: Final = get_logger("broker.network.connection")

MIN_PROGRESS_BYTES: Final = 64 * 1024
"""The bytes that an unfinished request must bring within odradek.request.stall.timeout.ms, or the rest of it if less:
two kilobytes a second by default, which the slowest line carries."""

CHECKS: Final = 4
"""Checks of each connection within that timeout, so that a connection is closed at most a quarter of it too late."""

ARRIVES, WAITS_FOR_ROOM, HOLDS, ENDS = range(4)
"""The reasons why a connection holds memory. ARRIVES: a part of its request has arrived. WAITS_FOR_ROOM: the rest of
the request gets no memory. HOLDS: requests wait for their answers while memory is short. ENDS: the connection is
closing, and its peer doesn't read the last answers."""

REASONS: Final = {
    ARRIVES: "a request of {size} bytes brought {arrived}, too few of them",
    WAITS_FOR_ROOM: "a request of {size} bytes got no memory beyond its first {arrived}, because other requests use it"
    " all (queued.max.request.bytes),",
    HOLDS: "its requests wait for answers while memory is short (queued.max.request.bytes), and got none",
    ENDS: "it is closing, and its peer did not read the last answers",
}


def stall_of(connection: ConnectionView, now_ms: int) -> Stall | None:
    """Returns the stall that a connection may be in; None if it holds nothing that others need."""
    reader = connection.reader
    if connection.is_ending:
        return Stall(ENDS, 0, -connection.transport.get_write_buffer_size(), now_ms)
    if connection.waits_for_memory:
        return Stall(WAITS_FOR_ROOM, reader.frames_begun, 0, now_ms)
    if connection.holds_scarce_memory:
        return Stall(HOLDS, connection.answered, 0, now_ms)
    if reader.held_bytes and connection.is_read_from:
        return Stall(ARRIVES, reader.frames_begun, reader.arrived_bytes, now_ms)
    return None


def stall_since(connection: ConnectionView, now_ms: int) -> Stall | None:
    """Returns the connection's stall, which began at an earlier check if there was no progress since."""
    stall, before = stall_of(connection, now_ms), connection.stall
    if stall is None or before is None or stall[:2] != before[:2]:
        return stall
    return stall if stall.moved_bytes >= before.moved_bytes + MIN_PROGRESS_BYTES else before


def reason(connection: ConnectionView, stall: Stall, timeout_ms: int) -> str:
    """Returns the reason for closing the connection, for the log."""
    reader = connection.reader
    text = REASONS[stall.kind].format(size=reader.announced_bytes, arrived=reader.arrived_bytes)
    return f"{text} within {timeout_ms} ms (odradek.request.stall.timeout.ms)"


def close_if_stalled(connection: ConnectionView, lines: ConnectionLines, now_ms: int, timeout_ms: int) -> None:
    """Closes a connection that holds memory without progress for `timeout_ms`; cuts it off if it is closing already."""
    connection.stall = stall = stall_since(connection, now_ms)
    if stall is None or now_ms - stall.since_ms < timeout_ms:
        return
    if connection.is_ending:
        logger.debug("connection closed", peer=connection.peer, reason=reason(connection, stall, timeout_ms))
    else:
        lines.closed(connection, reason(connection, stall, timeout_ms))
    connection.cut_off()
