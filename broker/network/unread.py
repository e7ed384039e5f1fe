"""The memory of answers that peers don't read, limited for all connections of a broker.

A connection isn't answered while its peer has unread answers. So it holds at most one unread answer, and the bytes
below the high water mark of its socket. Ten thousand connections that fetch a megabyte and never read would use up all
memory. Beyond the limit connections are cut off (budget.py). Records in mapped files aren't counted: the operating
system can reclaim their memory.
"""

from __future__ import annotations

import mmap
from typing import Final

from broker.network.budget import Budget
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


class UnreadAnswers:
    """The unread answers of all listeners of a broker."""

    def __init__(self, limit_bytes: int, lines: ConnectionLines) -> None:
        self._lines = lines
        self._budget = Budget(limit_bytes)

    @property
    def held_bytes(self) -> int:
        return self._budget.held

    def add(self, connection: ConnectionView, size_bytes: int) -> None:
        """Counts bytes of a new answer that the peer has not read. A single answer may be larger than the limit."""
        budget = self._budget
        if size_bytes:
            budget.add(connection, size_bytes)
        while budget.held > budget.limit and len(budget) > 1:
            slow = budget.next_to_close()
            self._lines.closed(slow, REASON.format(size=budget.discard(slow), limit=budget.limit))
            slow.cut_off()

    def discard(self, connection: ConnectionView) -> int:
        """Removes a connection's unread answers: they are read, or never will be. Returns their size."""
        return self._budget.discard(connection)
