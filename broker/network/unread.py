"""The memory of answers that peers do not take: so much for all of a broker's connections.

A connection is not answered while its peer has an answer to take, so each has one at most, and what is below the high
water mark of its socket. Ten thousand of them that ask for a megabyte and never read would be all memory that there is.
Beyond the limit one is cut off: of the address that holds most the one that has waited longest. Records that lie in
mapped files are not counted: their memory is the operating system's to take back.
"""

from __future__ import annotations

import mmap
from collections import OrderedDict
from typing import Final, Protocol

from broker.network.connection_lines import ConnectionLines, Told
from protocol.types import Buffer

REASON: Final = (
    "it has {size} bytes of answers that it does not take, and all connections together more than {limit} "
    "(odradek.unread.answers.max.bytes)"
)


MANY_BUFFERS: Final = 1024
"""As many as the system takes in one write (IOV_MAX)."""

SMALL_BYTES: Final = 4096
"""Buffers below this are copied into larger ones: that costs less than to write each for itself."""


def counted_bytes(answers: list[Buffer]) -> int:
    """Returns the memory of answers, but for records in mapped files."""
    return sum([len(answer) for answer in answers if not is_mapped(answer)])


def is_mapped(answer: Buffer) -> bool:
    return isinstance(answer, memoryview) and isinstance(answer.obj, mmap.mmap)


def joined(answers: list[Buffer]) -> list[Buffer]:
    """Returns the same bytes in few buffers, if there are many: an answer about a hundred thousand partitions has more
    than a million, and libuv writes no more than 1,048,576 at once."""
    if len(answers) <= MANY_BUFFERS:
        return answers
    result: list[Buffer] = []
    small: list[Buffer] = []
    for answer in answers:
        if len(answer) < SMALL_BYTES:
            small.append(answer)
            continue
        if small:
            result.append(b"".join(small))
            small = []
        result.append(answer)
    if small:
        result.append(b"".join(small))
    return result


class SlowReader(Told, Protocol):
    """A connection whose peer has an answer to take."""

    def cut_off(self) -> None:
        """It waits no longer."""


class UnreadOfAddress:
    """The answers that the connections of one address have not taken, the longest waiting first."""

    __slots__ = ("connections", "held_bytes")

    def __init__(self) -> None:
        self.held_bytes = 0
        self.connections: OrderedDict[SlowReader, int] = OrderedDict()


class UnreadAnswers:
    """One for all listeners of a broker."""

    def __init__(self, limit_bytes: int, lines: ConnectionLines) -> None:
        self.limit_bytes = limit_bytes
        self._lines = lines
        self.held_bytes = 0
        self._addresses: dict[str, UnreadOfAddress] = {}

    def hold(self, connection: SlowReader, size_bytes: int) -> None:
        """A peer has so much more to take."""
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

    def let_go(self, connection: SlowReader) -> int:
        """It has been taken, or never will be; how much it was."""
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
        """One answer may be larger than the limit, alone."""
        return len(self._addresses) > 1 or any(len(address.connections) > 1 for address in self._addresses.values())

    def _cut_one_off(self) -> None:
        most = max(self._addresses.values(), key=lambda address: address.held_bytes)
        connection = next(iter(most.connections))
        size_bytes = self.let_go(connection)
        self._lines.closed(connection, REASON.format(size=size_bytes, limit=self.limit_bytes))
        connection.cut_off()
