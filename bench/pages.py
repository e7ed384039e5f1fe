"""Makes the host back the memory that rounds write to, and keep it until the rounds end.

A virtual machine may return its free memory to its host in blocks of 2 MB, and gets it back with the first writes. A
gigabyte of page cache in such pages costs seconds of system time: many times the cost in backed pages, and more than a
broker's work for that gigabyte. Linux reports free blocks every two seconds, so that memory which was free between two
rounds may be gone. A page that stays in use in each block prevents that: such a block is never free as a whole. The
kernel takes page cache from the smallest free blocks that are large enough, so the rounds get the backed memory.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MOST_BYTES: Final = 8 * 1024**3
"""Maximum number of backed bytes. By their retention, loads that write more reuse this much."""

SHARE_OF_AVAILABLE: Final = 0.5
"""Share of the available memory; the rest is for clients, and for pages in use."""

BLOCK_BYTES: Final = 2 * 1024**2
"""Size of the blocks that Linux reports to the host (page_reporting_order)."""

KIB: Final = 1024


def available_bytes(meminfo: str) -> int:
    """Returns MemAvailable from the text of /proc/meminfo; 0 if it is missing."""
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * KIB
    return 0


@contextmanager
def backed(wanted_bytes: int) -> Iterator[int]:
    """Writes to this many bytes of new memory and frees them, except for a page in each block, which stays in use
    until the context ends. Yields the number of bytes."""
    with open("/proc/meminfo") as file:
        size = min(wanted_bytes, MOST_BYTES, int(available_bytes(file.read()) * SHARE_OF_AVAILABLE))
    size -= size % mmap.PAGESIZE
    if size <= 0:
        yield 0
        return
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        memory[:: mmap.PAGESIZE] = bytes(size // mmap.PAGESIZE)
        for start in range(0, size, BLOCK_BYTES):
            freed = start + mmap.PAGESIZE
            if freed < size:
                memory.madvise(mmap.MADV_DONTNEED, freed, min(BLOCK_BYTES - mmap.PAGESIZE, size - freed))
        yield size
