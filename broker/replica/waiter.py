"""Waits on a partition, for its log to grow or its high watermark to move."""

from __future__ import annotations


class Waiter:
    """Waits until `missing_bytes` more were appended to its partitions, or something else has happened to a partition.

    With `committed_only`, records that an open transaction holds back don't count; the transaction's end wakes the
    waiter.
    """

    __slots__ = ("committed_only", "missing_bytes")

    def __init__(self, missing_bytes: int, *, committed_only: bool = False) -> None:
        self.missing_bytes = missing_bytes
        self.committed_only = committed_only

    def appended(self, size_bytes: int) -> None:
        """Counts appended bytes, and wakes if no more are missing."""
        self.missing_bytes -= size_bytes
        if self.missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        """Has the waiter check its partitions again; later, because this may be called within an append."""
