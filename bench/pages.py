"""Memory for what a round writes, backed by the machine before the round begins.

A virtual machine may return its free memory to its host, and gets it again page by page when it is first written to. A
gigabyte of page cache in such pages costs seconds of system time, many times what it costs in pages that are there, and
more than a broker does for that gigabyte. Which round meets which pages is chance, so each round finds them backed.
"""

from __future__ import annotations

import mmap
from typing import Final

MOST_BYTES: Final = 4 * 1024**3
"""Loads that write more go round in this much, by their retention."""

SHARE_OF_AVAILABLE: Final = 0.5
"""The rest is for the clients, and for pages that are in use."""

KIB: Final = 1024


def available_bytes(meminfo: str) -> int:
    """Returns MemAvailable of /proc/meminfo's text; 0 where it has none."""
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * KIB
    return 0


def back(wanted_bytes: int) -> int:
    """Writes to so many bytes of new memory and lets go of it; returns how many bytes that were."""
    with open("/proc/meminfo") as file:
        size = min(wanted_bytes, MOST_BYTES, int(available_bytes(file.read()) * SHARE_OF_AVAILABLE))
    size -= size % mmap.PAGESIZE
    if size > 0:
        with mmap.mmap(-1, size) as memory:
            memory[:: mmap.PAGESIZE] = bytes(size // mmap.PAGESIZE)
    return max(0, size)
