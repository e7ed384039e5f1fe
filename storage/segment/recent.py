"""The exact positions of the newest batches in the active segment, where most consumers read."""

from __future__ import annotations

from array import array
from typing import Final

RECENT_BATCHES: Final = 256
"""Minimum number of remembered batches. Older batches are found by the index, which has an entry every few kilobytes.
"""
INT64: Final = "q"


class RecentBatches:
    """Base offsets and positions, both ascending: 4 to 8 KB for a partition, of which a broker may have thousands.
    Lists of integers would take five times as much."""

    __slots__ = ("offsets", "positions")

    def __init__(self) -> None:
        self.offsets = array(INT64)
        self.positions = array(INT64)

    def add(self, base_offset: int, position: int) -> None:
        """Adds an appended batch; sometimes drops the oldest batches, many at a time."""
        offsets = self.offsets
        offsets.append(base_offset)
        self.positions.append(position)
        if len(offsets) > 2 * RECENT_BATCHES:
            del offsets[:-RECENT_BATCHES], self.positions[:-RECENT_BATCHES]

    def covers(self, offset: int) -> bool:
        """True if the offset is in a remembered batch, or after all of them."""
        return bool(self.offsets) and offset >= self.offsets[0]

    def clear(self) -> None:
        self.offsets = array(INT64)
        self.positions = array(INT64)
