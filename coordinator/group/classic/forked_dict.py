"""A decision's changes to a dict, apart from the dict: a decision on a large group doesn't copy its members."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from itertools import chain
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ForkedDict(MutableMapping[K, V]):
    """A dict with a decision's changes over it; `merge_into` applies them. The order is that of a dict: a replaced
    value keeps its place, a new key comes last."""

    __slots__ = ("_below", "_gone", "_new", "_size")

    def __init__(self, below: dict[K, V]) -> None:
        self._below = below
        self._new: dict[K, V] = {}
        self._gone: set[K] = set()
        self._size = len(below)

    def __contains__(self, key: object) -> bool:
        return key in self._new or (key in self._below and key not in self._gone)

    def __getitem__(self, key: K) -> V:
        if key in self._new:
            return self._new[key]
        if key in self._gone:
            raise KeyError(key)
        return self._below[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._size += key not in self
        self._new[key] = value

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self._size -= 1
        self._new.pop(key, None)
        if key in self._below:
            self._gone.add(key)

    def __iter__(self) -> Iterator[K]:
        below, gone = self._below, self._gone
        if not gone and self._size == len(below):
            return iter(below)  # at most, values are replaced
        added = [key for key in self._new if key not in below or key in gone]
        return chain((key for key in below if key not in gone), added)

    def __len__(self) -> int:
        return self._size

    def has_own(self, key: K) -> bool:
        """True if the decision has set the key's value."""
        return key in self._new

    def merge_into(self, target: dict[K, V]) -> None:
        """Applies the decision's changes to `target`, which is equal to the underlying dict."""
        for key in self._gone:
            target.pop(key, None)
        target.update(self._new)
