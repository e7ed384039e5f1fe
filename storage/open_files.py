"""Limits how much the logs of a broker keep open between uses: a process has only so many file descriptors, and only so
much memory.

One `OpenFiles` goes with one `Disk`: all logs of a broker share it, and two brokers of a process share nothing. What
was closed is opened again at its next use, which takes some microseconds.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol
from weakref import ref

MAX_FILES: Final = 512
"""Segments that are appended to: a descriptor each."""

MAX_MAPPINGS: Final = 128
"""Segments that were read: with their indexes three descriptors each, as a mapping in Python has its own."""

MAX_TXN_INDEXES: Final = 64
"""Transaction indexes whose content is kept in memory: every read-committed fetch looks into one. A segment of a
gigabyte in which half of the transactions abort, of ten records each, has a megabyte of it."""

MAX_LOADED_BYTES: Final = 64 << 20
"""Mapped pages, over all segments, that may count as the process's memory because they were read. They are page cache,
but whoever limits a container's memory, or looks at it, sees them grow with all that consumers read. To let go of a
megabyte takes some microseconds, to send it a hundred."""


class Closable(Protocol):
    """A resource that can be closed, and opens again by itself."""

    def close(self) -> None: ...


class Loadable(Protocol):
    """A mapping whose pages are in memory once they were read."""

    def unload(self) -> None: ...


class KeptOpen:
    """Keeps the newest `limit` > 0 resources open; an owner may drop one without notice."""

    __slots__ = ("_items", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._items: deque[ref[Closable]] = deque()

    def add(self, item: Closable) -> None:
        """Adds an open resource; closes the one that was opened longest ago beyond the limit."""
        self._items.append(ref(item))
        while len(self._items) > self.limit:
            oldest = self._items.popleft()()
            if oldest is not None and oldest is not item:
                oldest.close()


class LoadedPages:
    """The mappings that were read since they last let go of their pages. Worker threads read too."""

    __slots__ = ("_mappings", "_size_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._mappings: dict[int, ref[Loadable]] = {}
        self._size_bytes = 0

    def add(self, mapping: Loadable, size_bytes: int) -> None:
        """Notes that `size_bytes` of the mapping are about to be read."""
        self._mappings[id(mapping)] = ref(mapping)
        self._size_bytes += size_bytes
        if self._size_bytes > self.limit_bytes:
            read, self._mappings, self._size_bytes = self._mappings, {}, 0
            for reference in tuple(read.values()):
                live = reference()
                if live is not None:
                    live.unload()


class OpenFiles:
    """The open files, mappings and indexes of all logs over one disk, with a limit of each kind."""

    __slots__ = ("files", "loaded", "mappings", "txn_indexes")

    def __init__(
        self, *, files: int = MAX_FILES, mappings: int = MAX_MAPPINGS, loaded_bytes: int = MAX_LOADED_BYTES
    ) -> None:
        self.files = KeptOpen(files)
        self.mappings = KeptOpen(mappings)
        self.txn_indexes = KeptOpen(MAX_TXN_INDEXES)
        self.loaded = LoadedPages(loaded_bytes)
