"""Gives memory that requests held back to the operating system.

Buffers of a megabyte come out of the C library's heap once it has seen some of them freed, and between what else lives
there their pages stay with the process: after five hundred requests of two megabytes, some hundreds of megabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.network.request_memory import RequestMemory

WORTH_BYTES: Final = 32 * 1024 * 1024
"""Below this nothing is given back: it will be needed again."""


@cache
def trim() -> Callable[[int], int] | None:
    """Returns glibc's malloc_trim; None where the C library has none: others give memory back by themselves."""
    import ctypes  # a millisecond of every start, for what few brokers ever need

    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None


def give_back(memory: RequestMemory) -> None:
    """Gives free pages back when much was held, and most of it has been released."""
    let_go_bytes = memory.most_bytes - memory.held_bytes
    if let_go_bytes < WORTH_BYTES or let_go_bytes < memory.held_bytes:
        return
    memory.most_bytes = memory.held_bytes
    malloc_trim = trim()
    if malloc_trim is not None:
        malloc_trim(0)
