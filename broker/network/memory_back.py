"""Returns memory that requests held to the operating system.

Buffers of a megabyte come from the C library's heap once it has seen some of them freed, and their pages stay with the
process, because other objects lie between them: after five hundred requests of two megabytes, some hundreds of
megabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

from protocol.lazy import lazy

if TYPE_CHECKING:
    import ctypes

    from broker.network.request_memory import RequestMemory
else:  # once the broker is ready
    ctypes = lazy("ctypes")

WORTH_BYTES: Final = 32 * 1024 * 1024
"""Memory below this isn't returned: requests will need it again."""


@cache
def trim() -> Callable[[int], int] | None:
    """Returns glibc's malloc_trim; None for other C libraries, which return memory by themselves."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (ImportError, AttributeError, OSError):
        return None


def give_back(memory: RequestMemory) -> None:
    """Frees the spare buffers. Returns free pages to the system if much was held and most of it has been released."""
    memory.spares.clear()
    released_bytes = memory.most_bytes - memory.held_bytes
    if released_bytes < WORTH_BYTES or released_bytes < memory.held_bytes:
        return
    memory.most_bytes = memory.held_bytes
    malloc_trim = trim()
    if malloc_trim is not None:
        malloc_trim(0)
