"""The memory of answers that peers don't read, limited for all connections of a broker.

A connection isn't answered while its peer has unread answers, so each has at most one, and what is below the high water
mark of its socket. Ten thousand connections that fetch a megabyte and never read would use up all memory. Beyond the
limit a connection is cut off: of the address that holds most, the connection that has waited longest. Records in mapped
files aren't counted: the operating system can reclaim their memory.
"""

from __future__ import annotations

import mmap
from collections import OrderedDict
from typing import Final

from broker.network.connection_lines import ConnectionLines
from broker.network.connection_view import ConnectionView
from protocol.types import Buffer

REASON: Final = (
    "its peer has not read {size} bytes of answers, and all connections together hold more than {limit} "
    "(odradek.unread.answers.max.bytes)"
)


def counted_bytes(answers: list[Buffer]) -> int:
    """Returns the memory of answers, without records in mapped files."""
    return sum([len(answer) for answer in answers if not is_mapped(answer)])


def is_mapped(answer: Buffer) -> bool:
    return isinstance(answer, memoryview) and isinstance(answer.obj, mmap.mmap)


class UnreadOfAddress:
    """The unread answers of one address's connections, the longest waiting first."""

    __slots__ = ("connections", "held_bytes")

    def __init__(self) -> None:
        self.held_bytes = 0
        self.connections: OrderedDict[ConnectionView, int] = OrderedDict()


class UnreadAnswers:
    """The unread answers of all listeners of a broker."""

    def __init__(self, limit_bytes: int, lines: ConnectionLines) -> None:
        self.limit_bytes = limit_bytes
        self._lines = lines
        self.held_bytes = 0
        self._addresses: dict[str, UnreadOfAddress] = {}

    def add(self, connection: ConnectionView, size_bytes: int) -> None:
        """Counts bytes of a new answer that the peer has not read."""
        if not size_bytes:
            return
        address = self._addresses.get(connection.ip)
        if address is None:
            address = self._addresses[connection.ip] = UnreadOfAddress()
        address.connections[connection] = address.connections.get(connection, 0) + size_bytes
        address.held_bytes += size_bytes
        self.held_bytes += size_bytes
        while self.held_bytes > self.limit_bytes and self._may_cut_off():
            self._cut_one_off()

    def discard(self, connection: ConnectionView) -> int:
        """Removes a connection's unread answers: they are read, or never will be. Returns their size."""
        address = self._addresses.get(connection.ip)
        if address is None:
            return 0
        size_bytes = address.connections.pop(connection, 0)
        address.held_bytes -= size_bytes
        self.held_bytes -= size_bytes
        if not address.connections:
            del self._addresses[connection.ip]
        return size_bytes

    def _may_cut_off(self) -> bool:
        """True if other connections have unread answers too: a single answer may be larger than the limit."""
        return len(self._addresses) > 1 or any(len(address.connections) > 1 for address in self._addresses.values())

    def _cut_one_off(self) -> None:
        most = max(self._addresses.values(), key=lambda address: address.held_bytes)
        connection = next(iter(most.connections))
        size_bytes = self.discard(connection)
        self._lines.closed(connection, REASON.format(size=size_bytes, limit=self.limit_bytes))
        connection.cut_off()
