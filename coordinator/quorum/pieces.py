"""Pieces of snapshots, in which a leader hands them out."""

from __future__ import annotations

from typing import NamedTuple

from coordinator.cluster.snapshot import SnapshotId


class PieceWish(NamedTuple):
    """The piece of a snapshot that a replica asks for."""

    snapshot_id: SnapshotId
    position: int
    max_bytes: int


class SnapshotPiece(NamedTuple):
    """Bytes of a snapshot, from the position asked for, and the size of the whole."""

    content: bytes
    size_bytes: int
