"""How much stays open between uses, over all logs of the process: it has only so many file descriptors.

What is let go of is opened again at its next use, which takes some microseconds.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol
from weakref import ref


class Closable(Protocol):
    """What can be let go of, and opens again by itself."""

    def close(self) -> None: ...


class KeptOpen:
    """Of what was opened, the newest `limit` > 0 stay so; whoever drops one need not say so."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._items: deque[ref[Closable]] = deque()

    def add(self, item: Closable) -> None:
        """It is being used, and the one that was opened longest ago may have to close."""
        self._items.append(ref(item))
        while len(self._items) > self.limit:
            oldest = self._items.popleft()()
            if oldest is not None:
                oldest.close()

    def forget(self) -> None:
        """Count from nothing again, closing nothing."""
        self._items.clear()


files = KeptOpen(512)
"""Segments that are appended to: a descriptor each."""

mappings = KeptOpen(128)
"""Segments that were read: with their indexes three descriptors each, as a mapping in Python has its own."""
