"""Limits the files that a broker's logs keep open between uses, because file descriptors and memory are limited.

Each `Disk` has an `OpenFiles`: all logs of a broker share it, and two brokers in a process share nothing. A closed file
is opened again at its next use, which takes some microseconds.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol
from weakref import ref

MAX_FILES: Final = 512
"""Open files of segments that are appended to, with a descriptor each."""

MAX_MAPPINGS: Final = 128
"""Mapped segments that were read. With its indexes a segment has three descriptors, because Python's mappings keep
their own."""

MAX_TXN_INDEXES: Final = 64
"""Transaction indexes whose content stays in memory: every read-committed fetch reads one. The index of a gigabyte
segment takes a megabyte if half of the transactions, with ten records each, abort."""

MAX_LOADED_BYTES: Final = 64 << 20
"""Maximum number of mapped bytes of all segments that may count as the process's memory because they were read. The
bytes belong to the page cache, but a container's memory limit and metrics count them, so without this limit they would
grow with every consumer's reads. Releasing a megabyte takes a few microseconds; sending it takes a hundred.
"""

MAX_LOADED: Final = 1024
"""Maximum number of mappings that count as read, whatever their size: each small read of a growing segment may map it
anew."""


class Closable(Protocol):
    """A resource that can be closed, and opens itself again at its next use."""

    def close(self) -> None: ...


class Loadable(Protocol):
    """A mapping whose pages stay in memory after they were read."""

    def unload(self) -> None: ...


class KeptOpen:
    """Keeps the newest `limit` > 0 resources open. Their owners may drop them at any time."""

    __slots__ = ("_items", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._items: deque[ref[Closable]] = deque()

    def add(self, item: Closable) -> None:
        """Adds an open resource; beyond the limit, closes the resource that was opened first."""
        self._items.append(ref(item))
        while len(self._items) > self.limit:
            oldest = self._items.popleft()()
            if oldest is not None and oldest is not item:
                oldest.close()


class LoadedPages:
    """The mappings that were read since the last release of all pages. Worker threads read too."""

    __slots__ = ("_mappings", "_size_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._mappings: dict[int, ref[Loadable]] = {}
        self._size_bytes = 0

    def add(self, mapping: Loadable, size_bytes: int) -> None:
        """Counts `size_bytes` of the mapping that are about to be read; beyond a limit, releases all pages."""
        self._mappings[id(mapping)] = ref(mapping)
        self._size_bytes += size_bytes
        if self._size_bytes > self.limit_bytes or len(self._mappings) > MAX_LOADED:
            read, self._mappings, self._size_bytes = self._mappings, {}, 0
            for reference in tuple(read.values()):
                live = reference()
                if live is not None:
                    live.unload()


class OpenFiles:
    """The open files, mappings and indexes of all logs on a disk, with a limit for each kind."""

    __slots__ = ("files", "loaded", "mappings", "txn_indexes")

    def __init__(
        self, *, files: int = MAX_FILES, mappings: int = MAX_MAPPINGS, loaded_bytes: int = MAX_LOADED_BYTES
    ) -> None:
        self.files = KeptOpen(files)
        self.mappings = KeptOpen(mappings)
        self.txn_indexes = KeptOpen(MAX_TXN_INDEXES)
        self.loaded = LoadedPages(loaded_bytes)
