"""Spreads the replicas of a topic evenly over brokers, with as few moves as possible. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, merge
from typing import TypeAlias

Replicas = dict[int, list[int]]
"""The brokers that hold each partition, the preferred leader first."""

Pair: TypeAlias = "tuple[int, int]"
"""A broker with too many replicas, and a broker with too few."""


def spread(current: Mapping[int, Sequence[int]], brokers: Sequence[int], replicas: int | None = None) -> Replicas:
    """Returns the replicas of each partition, which are only on `brokers`. `replicas` is their number; None keeps the
    number of each partition. Raises ValueError if there are fewer brokers than replicas."""
    counts = {partition: replicas or len(held) for partition, held in sorted(current.items())}
    if counts and max(counts.values()) > len(brokers):
        raise ValueError(f"{max(counts.values())} replicas need as many brokers; there are {len(brokers)}")
    held = {
        partition: [broker for broker in current[partition] if broker in brokers][:count]
        for partition, count in counts.items()
    }
    loads = Counter(broker for replicas_here in held.values() for broker in replicas_here)
    for partition, replicas_here in held.items():
        while len(replicas_here) < counts[partition]:
            broker = min((node for node in brokers if node not in replicas_here), key=lambda node: (loads[node], node))
            replicas_here.append(broker)
            loads[broker] += 1
    movable = _Movable(held)
    while _moves_one(movable, brokers, loads):
        pass
    return _led(held, brokers)


class _Movable:
    """The choice of the partition whose replica moves from one broker to another: a follower rather than a preferred
    leader, then the lowest partition. Each pair of brokers has a heap, which is made at its first use."""

    def __init__(self, held: Replicas) -> None:
        self._held = held
        self._heaps: dict[Pair, list[tuple[int, int]]] = {}
        """Heaps of entries: the negated index in the replica list, and the partition. An outdated entry is removed when
        it reaches the top."""

    def best(self, pair: Pair) -> int | None:
        """Returns the partition; None if the first broker has no replica that the second could take."""
        heap = self._heaps.get(pair)
        if heap is None:
            entries = (self._entry(pair, partition) for partition in self._held)
            heap = self._heaps[pair] = [entry for entry in entries if entry is not None]
            heapify(heap)
        while heap and self._entry(pair, heap[0][1]) != heap[0]:
            heappop(heap)
        return heap[0][1] if heap else None

    def _entry(self, pair: Pair, partition: int) -> tuple[int, int] | None:
        replicas = self._held[partition]
        high, low = pair
        return (-replicas.index(high), partition) if high in replicas and low not in replicas else None

    def move(self, partition: int, pair: Pair) -> None:
        """Moves a partition's replica from the first broker of `pair` to the second, and updates the heaps of both."""
        high, low = pair
        replicas = self._held[partition]
        replicas[replicas.index(high)] = low
        for other, heap in self._heaps.items():
            if other[0] == low or other[1] == high:
                entry = self._entry(other, partition)
                if entry is not None:
                    heappush(heap, entry)


def _moves_one(movable: _Movable, brokers: Sequence[int], loads: Counter[int]) -> bool:
    """Moves one replica from a broker to another that has at least two fewer. Returns False if no replica can move."""
    for high, low in _uneven(brokers, loads):
        partition = movable.best((high, low))
        if partition is not None:
            movable.move(partition, (high, low))
            loads[high] -= 1
            loads[low] += 1
            return True
    return False


def _uneven(brokers: Sequence[int], loads: Counter[int]) -> Iterator[Pair]:
    """Yields pairs of brokers with too many and too few replicas, the most uneven pair first."""
    emptiest = sorted(brokers, key=lambda broker: (loads[broker], broker))
    for _, high, low in merge(*(_uneven_with(high, emptiest, loads) for high in brokers)):
        yield high, low


def _uneven_with(high: int, emptiest: Sequence[int], loads: Counter[int]) -> Iterator[tuple[int, int, int]]:
    """Yields each broker that has at least two fewer replicas, as (difference, high, low), in order."""
    for low in emptiest:
        difference = loads[low] - loads[high]
        if difference > -2:
            return
        yield difference, high, low


def _led(held: Replicas, brokers: Sequence[int]) -> Replicas:
    """Returns the replicas with evenly spread preferred leaders; the first replica stays the first if it can."""
    share = -(-len(held) // max(len(brokers), 1))
    leads: Counter[int] = Counter()
    ordered: Replicas = {}
    for partition, replicas in held.items():
        leader = replicas[0]
        if leads[leader] >= share:
            leader = min(replicas, key=lambda broker: leads[broker])
        leads[leader] += 1
        ordered[partition] = [leader, *(broker for broker in replicas if broker != leader)]
    return ordered
