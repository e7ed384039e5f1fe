"""Delays full garbage collections during large requests: a collection traverses every object of a request, while no
other thread runs.

The objects of a request have no cycles, so they are freed without a collection. Younger generations are still
collected.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MIN_BYTES: Final = 128 * 1024
"""The smallest request that delays full collections. A smaller one has at most 32,000 entries, of four bytes each,
whose objects take some thirty milliseconds."""

NEVER: Final = 1 << 30
"""A threshold of the oldest generation that is never reached."""


class FullCollections:
    """Delays full collections while large requests are in progress."""

    def __init__(self) -> None:
        self._large_requests = 0
        self._threshold = 0

    @contextmanager
    def delayed(self, size_bytes: int) -> Iterator[None]:
        """Delays full collections during the block, if the request is large enough."""
        if size_bytes < MIN_BYTES:
            yield
            return
        if not self._large_requests:
            young, middle, self._threshold = gc.get_threshold()
            gc.set_threshold(young, middle, NEVER)
        self._large_requests += 1
        try:
            yield
        finally:
            self._large_requests -= 1
            if not self._large_requests:
                young, middle, _ = gc.get_threshold()
                gc.set_threshold(young, middle, self._threshold)


FULL_COLLECTIONS: Final = FullCollections()
"""The only instance, because a process has one garbage collector."""
