"""The memory of unanswered requests, limited for all connections of a broker and for each address.

Most requests arrive whole and are answered in the shared receive buffer: they aren't counted, and don't wait even if
memory is short. The memory counts incomplete frames, requests that wait for other requests of their connection, and
large requests whose answer waits.

A frame gets more memory as it arrives, as long as the limit allows. Then its connection isn't read from. So that
connections don't all wait for each other, the first continues beyond the limit until its frame is whole, then the next;
the memory held stays below the limit and one more request (Kafka's memory pool overdraws as much). Source:
queued.max.request.bytes, KIP-72; org.apache.kafka.common.memory.SimpleMemoryPool.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from broker.network.connection_view import ConnectionView
from protocol.connection import Spares

RECEIVE_BUFFER_BYTES: Final = 512 * 1024
"""The most that one read can take: several produce batches of the usual 16 KiB to 64 KiB in one system call."""

SHORT_READ_BYTES: Final = 16 * 1024
"""The most that one read can take while memory is short: as much of an incomplete frame may have to be held."""


SPARE_BUFFERS: Final = 4
"""Maximum number of buffers that are kept between requests."""

COUNTED_BYTES: Final = 64 * 1024
"""Requests longer than this, as with a thousand partitions, count as memory while their answers wait. The memory of
smaller requests is bounded by the number of connections; nearly every consumer has one request that waits."""

OBJECT_BYTES: Final = 40
"""Memory that a byte of a decoded request takes at worst (see MAX_OTHER_REQUEST_BYTES)."""

PRODUCE: Final = b"\0\0"
"""The key of Produce, the only API whose requests are mostly records, which are not decoded to objects."""


def cost_bytes(frame: memoryview) -> int:
    """Returns the memory that a request takes at worst while its answer waits."""
    return len(frame) if bytes(frame[: len(PRODUCE)]) == PRODUCE else len(frame) * OBJECT_BYTES


class Share:
    """The memory that the connections of one address hold."""

    __slots__ = ("connections", "held_bytes")

    def __init__(self) -> None:
        self.connections = 0
        self.held_bytes = 0


class RequestMemory:
    """The memory of requests of all listeners of a broker."""

    def __init__(self, limit_bytes: int = sys.maxsize, share_bytes: int = sys.maxsize) -> None:
        self.limit_bytes = limit_bytes
        self.share_bytes = share_bytes
        """Maximum for one address."""
        self.held_bytes = 0
        self.is_short = False
        """True if the limit is reached."""
        self.most_bytes = 0
        """The most that was held since `most_bytes` was last set."""
        self.shares: dict[str, Share] = {}
        self.spares = Spares(SPARE_BUFFERS)
        """The buffers of requests that arrived in parts."""
        self._buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self.receive_buffer = self._buffer
        """The buffer of all connections, because a read is handled before the next starts; only a part of it while
        memory is short."""
        self._waiting: dict[ConnectionView, int] = {}
        """The waiting connections in order of arrival, with the bytes that each needs."""
        self.first: ConnectionView | None = None
        """The connection that continues beyond the limit."""

    def join(self, ip: str) -> Share:
        """Returns the share of an address, for one more connection."""
        share = self.shares.get(ip)
        if share is None:
            share = self.shares[ip] = Share()
        share.connections += 1
        return share

    def leave(self, ip: str, connection: ConnectionView) -> None:
        """Removes a connection that is closed and no longer holds memory."""
        self._waiting.pop(connection, None)
        if self.first is connection:
            self.pass_on()
        share = self.shares[ip]
        share.connections -= 1
        if not share.connections:
            del self.shares[ip]

    def hold(self, share: Share, more_bytes: int) -> None:
        """Adds bytes to the memory held, or subtracts them; the bytes have been read, so they can't be rejected."""
        share.held_bytes += more_bytes
        self.held_bytes += more_bytes
        if self.held_bytes > self.most_bytes:
            self.most_bytes = self.held_bytes
        is_short = self.held_bytes >= self.limit_bytes
        if is_short != self.is_short:
            self.is_short = is_short
            self.receive_buffer = self._buffer[:SHORT_READ_BYTES] if is_short else self._buffer
        if more_bytes < 0 and self._waiting:
            asyncio.get_running_loop().call_soon(self._offer)

    def grants(self, connection: ConnectionView, share: Share, more_bytes: int) -> bool:
        """True if a frame gets `more_bytes` now. Otherwise `ask_for_room` is called on the connection later."""
        fits = self.held_bytes + more_bytes <= self.limit_bytes and share.held_bytes + more_bytes <= self.share_bytes
        if not fits:
            if self.first is None:
                self.first = connection
            elif self.first is not connection:
                self._waiting[connection] = more_bytes
                return False
        self._waiting.pop(connection, None)
        return True

    def waits(self, connection: ConnectionView) -> bool:
        return connection in self._waiting

    def pass_on(self) -> None:
        """Lets the next frame continue beyond the limit, because the previous frame is whole or was dropped."""
        self.first = None
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._offer)

    def _offer(self) -> None:
        """Offers free memory to the waiting connections, in their order."""
        for connection in tuple(self._waiting):
            if self.is_short and self.first is not None:
                return
            connection.ask_for_room()
