"""ByOffset: items in the order of their first offsets, with look-up, addition and removal in logarithmic time.

The items are stored in chunks of bounded length, so that an insertion moves a bounded number of them: a batch of the
log may have more than a hundred thousand records, and a member may acknowledge each of them differently.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, Generic, Protocol, TypeVar

LONGEST_CHUNK: Final = 512
"""Maximum number of items in a chunk: large enough that few chunks are searched, and small enough that an insertion
costs less than the search."""


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
        """Adds an item that doesn't overlap any other item."""
        self.add_all((item,))

    def add_all(self, items: Sequence[T]) -> None:
        """Adds items in order. They must not overlap any other item, and no other item may be between them."""
        if not self._lows:
            self._set_chunks(0, 0, list(items))
            return
        at = max(bisect_right(self._lows, items[0].first) - 1, 0)
        chunk, firsts = self._chunks[at], self._firsts[at]
        index = bisect_right(firsts, items[0].first)
        chunk[index:index] = items
        if len(chunk) > LONGEST_CHUNK:
            self._set_chunks(at, at + 1, chunk)
            return
        firsts[index:index] = [item.first for item in items]
        self._lows[at] = firsts[0]

    def _set_chunks(self, start: int, end: int, items: list[T]) -> None:
        """Stores the items in half-full chunks, in place of the chunks from `start` to before `end`."""
        size = LONGEST_CHUNK // 2
        chunks = [items[first : first + size] for first in range(0, len(items), size)]
        firsts = [[item.first for item in chunk] for chunk in chunks]
        self._chunks[start:end] = chunks
        self._firsts[start:end] = firsts
        self._lows[start:end] = [some[0] for some in firsts]

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
