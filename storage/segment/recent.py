"""Where the newest batches of the active segment are, exactly: consumers that keep up read there."""

from __future__ import annotations

from typing import Final

RECENT_BATCHES: Final = 4096
"""How many batches at least: the indexes, which have an entry every few kilobytes, find the others."""


class RecentBatches:
    """Base offsets and positions, both ascending; two lists, since a list of pairs costs three times the memory."""

    __slots__ = ("offsets", "positions")

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.positions: list[int] = []

    def add(self, base_offset: int, position: int) -> None:
        """Adds an appended batch; drops the oldest now and then, many at a time."""
        offsets = self.offsets
        offsets.append(base_offset)
        self.positions.append(position)
        if len(offsets) > 2 * RECENT_BATCHES:
            del offsets[:-RECENT_BATCHES], self.positions[:-RECENT_BATCHES]

    def covers(self, offset: int) -> bool:
        """True when the offset is in one of the batches, or after them."""
        return bool(self.offsets) and offset >= self.offsets[0]

    def clear(self) -> None:
        self.offsets = []
        self.positions = []
