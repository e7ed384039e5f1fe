"""Divides the files and connections that the process may have open.

A connection with the last descriptor would leave none for a log, and a log that can't be opened is a failed disk.
"""

from __future__ import annotations

import resource
from typing import NamedTuple

MOST_DESCRIPTORS = 1 << 20
MAX_MAPPINGS = 512
WAITING_CONNECTIONS = 50
"""Connections over the limit that wait, unread, until a place is free; as many as Kafka's listen backlog."""


OWN = 32
"""Descriptors of the event loop, listeners, standard streams and locks."""


class Shares(NamedTuple):
    """The division of all descriptors. A mapping takes three; the remaining sixteenth is for files that are open
    briefly."""

    connections: int
    files: int
    mappings: int


def shares(limit: int) -> Shares:
    """Returns the resources of each kind that a process with `limit` descriptors may have open."""
    free = max(16, limit - OWN - WAITING_CONNECTIONS)
    return Shares(connections=free // 2, files=free // 4, mappings=min(MAX_MAPPINGS, free // 16))


def raise_limit() -> int:
    """Raises the limit to the most that the system allows this process, as the JVM does, and returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    limit = MOST_DESCRIPTORS if hard == unlimited else min(hard, MOST_DESCRIPTORS)
    if soft == unlimited or soft >= limit:
        return MOST_DESCRIPTORS if soft == unlimited else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    except (OSError, ValueError):  # macOS has a limit that it does not report
        return soft
    return limit


def divide() -> Shares:
    """Raises the limit of descriptors and returns its division."""
    return shares(raise_limit())
