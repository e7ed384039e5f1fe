"""How many files and connections the process may have open, and who gets them.

A connection that took the last descriptor would leave none for a log, and a log that cannot be opened is a failed disk.
"""

from __future__ import annotations

import resource
from typing import NamedTuple

from storage.segment import kept_open

WANTED = 1 << 20
MAX_MAPPINGS = 512
WAITING_CONNECTIONS = 50
"""Connections over the limit that are kept, unread, until a place is free; Kafka's listen backlog is the same."""


OWN = 32
"""Of the event loop, listeners, standard streams and locks."""


class Shares(NamedTuple):
    """Of all descriptors. A mapping takes three; the sixteenth that is left is for what is open for a moment."""

    connections: int
    files: int
    mappings: int


def shares(limit: int) -> Shares:
    """What a process with so many descriptors may keep open of each kind."""
    free = max(16, limit - OWN - WAITING_CONNECTIONS)
    return Shares(connections=free // 2, files=free // 4, mappings=min(MAX_MAPPINGS, free // 16))


def raise_limit() -> int:
    """Make it as many as the system allows this process, as the JVM does; the number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = WANTED if hard == unlimited else min(hard, WANTED)
    if soft == unlimited or soft >= wanted:
        return WANTED if soft == unlimited else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # macOS has a limit that it does not tell
        return soft
    return wanted


def divide() -> int:
    """Raise the limit, and tell storage its share; how many connections there may be."""
    connections, kept_open.files.limit, kept_open.mappings.limit = shares(raise_limit())
    return connections
