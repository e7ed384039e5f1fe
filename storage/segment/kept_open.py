"""Limits how many files and mappings stay open between uses, over all logs of the process: it has only so many file
descriptors.

A closed one is opened again at its next use, which takes some microseconds.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol
from weakref import ref


class Closable(Protocol):
    """A resource that can be closed, and opens again by itself."""

    def close(self) -> None: ...


class KeptOpen:
    """Keeps the newest `limit` > 0 resources open; an owner may drop one without notice."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._items: deque[ref[Closable]] = deque()

    def add(self, item: Closable) -> None:
        """Adds an open resource; closes the one that was opened longest ago beyond the limit."""
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
