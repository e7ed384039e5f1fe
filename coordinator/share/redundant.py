"""Which records of the state topic are needed no more: those before the oldest of all newest snapshots.

Source: ShareCoordinatorOffsetsManager (KIP-932).
"""

from __future__ import annotations

from coordinator.share.key import ShareKey


class Redundant:
    """The offset of the newest snapshot of each share partition, and the least of them.

    Snapshots come in the order of their offsets, so the table, kept in that order, has the least first.
    """

    __slots__ = ("_newest", "_since_empty")

    def __init__(self) -> None:
        self._newest: dict[ShareKey, int] = {}
        self._since_empty: int | None = None
        """The last tombstone, once there is nothing else."""

    def snapshot(self, key: ShareKey, offset: int) -> None:
        self._newest.pop(key, None)
        self._newest[key] = offset

    def tombstone(self, key: ShareKey, offset: int) -> None:
        self._newest.pop(key, None)
        self._since_empty = offset

    @property
    def before(self) -> int | None:
        """Records below this offset may go; None if there are none yet."""
        least = next(iter(self._newest.values()), self._since_empty)
        return least or None
