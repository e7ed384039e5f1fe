"""The memory of requests that are not answered yet, limited for all of a broker's connections, and for one address.

Most requests arrive whole and are answered where they lie, in the one receive buffer: they are not counted, and not
held up, however short memory is. Counted are frames of which a part is missing, requests that wait for others of their
connection, and large ones whose answer waits.

A frame gets more room as it comes, while there is any. Then it waits: its connection is not read from. So that not all
wait for each other, the first one goes on beyond the limit until its frame is whole, then the next; what is held stays
below the limit and one more request (Kafka's memory pool overdraws as much).
Source: queued.max.request.bytes, KIP-72; org.apache.kafka.common.memory.SimpleMemoryPool.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final, Protocol

RECEIVE_BUFFER_BYTES: Final = 512 * 1024
"""The most that one read can take: several produce batches of the usual 16 KiB to 64 KiB in one system call."""

SHORT_READ_BYTES: Final = 16 * 1024
"""The most that one read can take while memory is short: it may leave as much, cut in the middle, to be held."""


COUNTED_BYTES: Final = 64 * 1024
"""Requests longer than this, of a thousand partitions, count as memory while their answers wait. What a smaller one
holds is bounded by the connections that there may be; nearly all consumers have one that waits."""

OBJECT_BYTES: Final = 40
"""Memory that a byte of a request takes once it has become objects, at worst (see MAX_OTHER_REQUEST_BYTES)."""

PRODUCE: Final = b"\0\0"
"""The key of the one API whose requests are mostly records, which stay bytes."""


def cost_bytes(frame: memoryview) -> int:
    """Returns the memory that a request takes while its answer waits, at worst."""
    return len(frame) if bytes(frame[: len(PRODUCE)]) == PRODUCE else len(frame) * OBJECT_BYTES


class Holder(Protocol):
    """A connection that holds memory, or waits for some."""

    def ask_for_room(self) -> None:
        """There may be room now."""


class Share:
    """The memory that the connections of one address hold."""

    __slots__ = ("connections", "held_bytes")

    def __init__(self) -> None:
        self.connections = 0
        self.held_bytes = 0


class RequestMemory:
    """One for all listeners of a broker."""

    def __init__(self, limit_bytes: int = sys.maxsize, share_bytes: int = sys.maxsize) -> None:
        self.limit_bytes = limit_bytes
        self.share_bytes = share_bytes
        """The most of one address."""
        self.held_bytes = 0
        self.is_short = False
        """True while the limit is reached."""
        self.most_bytes = 0
        """The most that was held since `most_bytes` was last set."""
        self.shares: dict[str, Share] = {}
        self._buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self.receive_buffer = self._buffer
        """The buffer of all connections, since a read is handled before the next one starts; a part of it while memory
        is short."""
        self._waiting: dict[Holder, int] = {}
        """The connections that wait, with the bytes that they need; in the order in which they came."""
        self.first: Holder | None = None
        """The connection that goes on beyond the limit."""

    def join(self, ip: str) -> Share:
        """Returns the share of an address, for one more connection."""
        share = self.shares.get(ip)
        if share is None:
            share = self.shares[ip] = Share()
        share.connections += 1
        return share

    def leave(self, ip: str, connection: Holder) -> None:
        """Forgets a connection that is gone and holds nothing any more."""
        self._waiting.pop(connection, None)
        if self.first is connection:
            self.pass_on()
        share = self.shares[ip]
        share.connections -= 1
        if not share.connections:
            del self.shares[ip]

    def hold(self, share: Share, more_bytes: int) -> None:
        """Counts bytes that are held more, or less; it cannot refuse, since the bytes are here."""
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

    def grants(self, connection: Holder, share: Share, more_bytes: int) -> bool:
        """True when a frame gets that much more room now; else the connection is called once it does."""
        fits = self.held_bytes + more_bytes <= self.limit_bytes and share.held_bytes + more_bytes <= self.share_bytes
        if not fits:
            if self.first is None:
                self.first = connection
            elif self.first is not connection:
                self._waiting[connection] = more_bytes
                return False
        self._waiting.pop(connection, None)
        return True

    def waits(self, connection: Holder) -> bool:
        return connection in self._waiting

    def pass_on(self) -> None:
        """Lets the next frame go on beyond the limit: the one before is whole, or given up."""
        self.first = None
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._offer)

    def _offer(self) -> None:
        """Offers free room to the connections that wait, in their order."""
        for connection in tuple(self._waiting):
            if self.is_short and self.first is not None:
                return
            connection.ask_for_room()
