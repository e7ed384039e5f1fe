"""Waiters on a partition, for its log to grow or an offset to be committed."""

from __future__ import annotations


class Waiter:
    """Waits until `missing_bytes` more were appended to its partitions, or one of them needs attention.

    With `committed_only` records that an open transaction holds back do not count; its end calls for attention.
    """

    __slots__ = ("committed_only", "missing_bytes")

    def __init__(self, missing_bytes: int, *, committed_only: bool = False) -> None:
        self.missing_bytes = missing_bytes
        self.committed_only = committed_only

    def appended(self, size_bytes: int) -> None:
        self.missing_bytes -= size_bytes
        if self.missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        """Has it look again; not on the spot, since an append may be on its way."""
