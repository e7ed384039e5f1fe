"""ByOffset: items in the order of their first offsets, with look-up, addition and removal in logarithmic time.

The items are stored in chunks of bounded length, so that an insertion moves a bounded number of them: a batch of the
log may have more than a hundred thousand records, and a member may acknowledge each of them differently.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

LONGEST_CHUNK: Final = 512
"""Long enough that few chunks are searched, short enough that an insertion costs less than the search."""


class Ranged(Protocol):
    """Offsets first to last, both included. `first` doesn't change while the item is stored."""

    first: int
    last: int


T = TypeVar("T", bound=Ranged)


class ByOffset(Generic[T]):
    """Items that don't overlap."""

    __slots__ = ("_chunks", "_firsts", "_lows")

    def __init__(self) -> None:
        self._chunks: list[list[T]] = []
        self._firsts: list[list[int]] = []
        """The items' first offsets, chunk by chunk."""
        self._lows: list[int] = []
        """The first offset of each chunk."""

    def __repr__(self) -> str:
        return str(list(self))

    def __bool__(self) -> bool:
        return bool(self._lows)

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __iter__(self) -> Iterator[T]:
        for chunk in self._chunks:
            yield from chunk

    @property
    def head(self) -> T:
        """The first item; there must be one."""
        return self._chunks[0][0]

    @property
    def tail(self) -> T:
        """The last item; there must be one."""
        return self._chunks[-1][-1]

    def floor(self, offset: int) -> T | None:
        """Returns the item that has the offset, or else the item before it."""
        at = bisect_right(self._lows, offset) - 1
        return self._chunks[at][bisect_right(self._firsts[at], offset) - 1] if at >= 0 else None

    def between(self, first: int, last: int) -> list[T]:
        """Returns the items that have offsets from `first` to `last`."""
        result: list[T] = []
        at = max(bisect_right(self._lows, first) - 1, 0)
        start = max(bisect_right(self._firsts[at], first) - 1, 0) if self._lows else 0
        while at < len(self._lows) and self._lows[at] <= last:
            result += self._chunks[at][start : bisect_right(self._firsts[at], last)]
            at, start = at + 1, 0
        if result and result[0].last < first:
            del result[0]
        return result

    def add(self, item: T) -> None:
        """Adds an item that overlaps no other."""
        if not self._lows:
            self._insert_chunk(0, [item], [item.first])
            return
        at = max(bisect_right(self._lows, item.first) - 1, 0)
        chunk, firsts = self._chunks[at], self._firsts[at]
        index = bisect_right(firsts, item.first)
        chunk.insert(index, item)
        firsts.insert(index, item.first)
        self._lows[at] = firsts[0]
        if len(chunk) > LONGEST_CHUNK:
            half = len(chunk) // 2
            self._insert_chunk(at + 1, chunk[half:], firsts[half:])
            del chunk[half:], firsts[half:]

    def _insert_chunk(self, at: int, chunk: list[T], firsts: list[int]) -> None:
        self._chunks.insert(at, chunk)
        self._firsts.insert(at, firsts)
        self._lows.insert(at, firsts[0])

    def remove(self, item: T) -> None:
        """Removes an item, which must be there."""
        at = bisect_right(self._lows, item.first) - 1
        chunk, firsts = self._chunks[at], self._firsts[at]
        index = bisect_right(firsts, item.first) - 1
        assert chunk[index] is item, f"{item!r} is not kept"
        del chunk[index], firsts[index]
        if firsts:
            self._lows[at] = firsts[0]
        else:
            del self._chunks[at], self._firsts[at], self._lows[at]

    def clear(self) -> None:
        """Removes all items."""
        self._chunks.clear()
        self._firsts.clear()
        self._lows.clear()
