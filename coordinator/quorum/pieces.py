"""Pieces of snapshots, as a leader sends them."""

from __future__ import annotations

from typing import NamedTuple

from coordinator.cluster.snapshot import SnapshotId


class PieceWish(NamedTuple):
    """The piece of a snapshot that a replica requests."""

    snapshot_id: SnapshotId
    position: int
    max_bytes: int


class SnapshotPiece(NamedTuple):
    """Bytes of a snapshot from the requested position, and the size of the whole."""

    content: bytes
    size_bytes: int
