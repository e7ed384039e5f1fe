"""Makes the host back the memory that a round writes to, before the round begins.

A virtual machine may return its free memory to its host, and gets it back page by page with the first writes. A
gigabyte of page cache in such pages costs seconds of system time: many times the cost in backed pages, and more than a
broker's work for that gigabyte. Which rounds get such pages is chance, so the memory is backed before each round.
"""

from __future__ import annotations

import mmap
from typing import Final

MOST_BYTES: Final = 4 * 1024**3
"""Maximum number of backed bytes. By their retention, loads that write more reuse this much."""

SHARE_OF_AVAILABLE: Final = 0.5
"""Share of the available memory; the rest is for clients, and for pages in use."""

KIB: Final = 1024


def available_bytes(meminfo: str) -> int:
    """Returns MemAvailable from the text of /proc/meminfo; 0 if it is missing."""
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * KIB
    return 0


def back(wanted_bytes: int) -> int:
    """Writes to this many bytes of new memory and frees them; returns the number of bytes."""
    with open("/proc/meminfo") as file:
        size = min(wanted_bytes, MOST_BYTES, int(available_bytes(file.read()) * SHARE_OF_AVAILABLE))
    size -= size % mmap.PAGESIZE
    if size > 0:
        with mmap.mmap(-1, size) as memory:
            memory[:: mmap.PAGESIZE] = bytes(size // mmap.PAGESIZE)
    return max(0, size)
