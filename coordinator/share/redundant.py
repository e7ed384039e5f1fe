"""Finds the records of the state topic that are no longer needed: the records before the newest snapshots of all share
partitions.

Source: ShareCoordinatorOffsetsManager (KIP-932).
"""

from __future__ import annotations

from coordinator.share.key import ShareKey


class Redundant:
    """The offset of the newest snapshot of each share partition, and the lowest of them.

    Snapshots come in the order of their offsets, so the dict, kept in that order, has the lowest first.
    """

    __slots__ = ("_newest", "_since_empty")

    def __init__(self) -> None:
        self._newest: dict[ShareKey, int] = {}
        self._since_empty: int | None = None
        """The offset of the last tombstone, if no snapshot is left."""

    def snapshot(self, key: ShareKey, offset: int) -> None:
        self._newest.pop(key, None)
        self._newest[key] = offset

    def tombstone(self, key: ShareKey, offset: int) -> None:
        self._newest.pop(key, None)
        self._since_empty = offset

    @property
    def before(self) -> int | None:
        """Returns the offset below which records may be deleted; None if no record may be deleted yet."""
        least = next(iter(self._newest.values()), self._since_empty)
        return least or None
