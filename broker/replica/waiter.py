"""Lets requests wait for a partition's log to grow, or for its high watermark to advance."""

from __future__ import annotations


class Waiter:
    """Waits until `missing_bytes` more were appended to its partitions, or until something else happens to a partition.

    With `committed_only`, records of an open transaction don't count; the transaction's end wakes the waiter.
    """

    __slots__ = ("committed_only", "missing_bytes")

    def __init__(self, missing_bytes: int, *, committed_only: bool = False) -> None:
        self.missing_bytes = missing_bytes
        self.committed_only = committed_only

    def appended(self, size_bytes: int) -> None:
        """Counts appended bytes, and wakes the waiter when enough have arrived."""
        self.missing_bytes -= size_bytes
        if self.missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        """Schedules another check of the partitions. It runs later, because this may be called within an append."""
