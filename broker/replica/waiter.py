"""What hangs on a partition until its log grows, or until something is committed."""

from __future__ import annotations


class Waiter:
    """Waits until `missing_bytes` more were appended to its partitions, or one of them needs attention.

    With `committed_only` what an open transaction holds back does not count; its end calls for attention.
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
        """It should look again; nothing is done on the spot, since an append may be on its way."""
