"""Replicas of a topic spread over brokers, with as few moves as an even load allows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, merge
from typing import TypeAlias

Replicas = dict[int, list[int]]
"""The brokers that hold each partition, the preferred leader first."""

Pair: TypeAlias = "tuple[int, int]"
"""A broker that holds too much, and one that holds too little."""


def spread(current: Mapping[int, Sequence[int]], brokers: Sequence[int], replicas: int | None = None) -> Replicas:
    """Returns the replicas of each partition on these brokers alone: as many as it has, or `replicas`. Raises
    ValueError where there are fewer brokers than replicas."""
    counts = {partition: replicas or len(held) for partition, held in sorted(current.items())}
    if counts and max(counts.values()) > len(brokers):
        raise ValueError(f"{max(counts.values())} replicas need as many brokers; there are {len(brokers)}")
    held = {one: [broker for broker in current[one] if broker in brokers][: counts[one]] for one in counts}
    loads = Counter(broker for replicas_here in held.values() for broker in replicas_here)
    for partition, replicas_here in held.items():
        while len(replicas_here) < counts[partition]:
            broker = min((one for one in brokers if one not in replicas_here), key=lambda one: (loads[one], one))
            replicas_here.append(broker)
            loads[broker] += 1
    movable = _Movable(held)
    while _moves_one(movable, brokers, loads):
        pass
    return _led(held, brokers)


class _Movable:
    """Which partition's replica to move from one broker to another: rather a follower than a preferred leader, then
    that of the lowest partition. A pair of brokers has a heap, made when it is first asked for."""

    def __init__(self, held: Replicas) -> None:
        self._held = held
        self._heaps: dict[Pair, list[tuple[int, int]]] = {}
        """Places in the replicas, negated, and partitions. What has moved since is left in it, and taken out when it
        comes up."""

    def best(self, pair: Pair) -> int | None:
        """Returns the partition; None where the one broker has no replica that the other could take."""
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
        """Replaces a partition's broker by another. Then it may move from that one, and others may move it to the
        former."""
        high, low = pair
        replicas = self._held[partition]
        replicas[replicas.index(high)] = low
        for other, heap in self._heaps.items():
            if other[0] == low or other[1] == high:
                entry = self._entry(other, partition)
                if entry is not None:
                    heappush(heap, entry)


def _moves_one(movable: _Movable, brokers: Sequence[int], loads: Counter[int]) -> bool:
    """Moves one replica from a broker to one that holds fewer by two at least; False where there is none to move."""
    for high, low in _uneven(brokers, loads):
        partition = movable.best((high, low))
        if partition is not None:
            movable.move(partition, (high, low))
            loads[high] -= 1
            loads[low] += 1
            return True
    return False


def _uneven(brokers: Sequence[int], loads: Counter[int]) -> Iterator[Pair]:
    """Yields brokers that hold too much with those that hold too little, the most uneven first."""
    emptiest = sorted(brokers, key=lambda one: (loads[one], one))
    for _, high, low in merge(*(_uneven_with(high, emptiest, loads) for high in brokers)):
        yield high, low


def _uneven_with(high: int, emptiest: Sequence[int], loads: Counter[int]) -> Iterator[tuple[int, int, int]]:
    """Yields the difference to each broker that holds fewer by two at least, and both brokers, in order."""
    for low in emptiest:
        difference = loads[low] - loads[high]
        if difference > -2:
            return
        yield difference, high, low


def _led(held: Replicas, brokers: Sequence[int]) -> Replicas:
    """Returns the replicas with preferred leaders that are spread as evenly: the first stays the first where it can."""
    share = -(-len(held) // max(len(brokers), 1))
    leads: Counter[int] = Counter()
    ordered: Replicas = {}
    for partition, replicas in held.items():
        leader = replicas[0]
        if leads[leader] >= share:
            leader = min(replicas, key=lambda one: leads[one])
        leads[leader] += 1
        ordered[partition] = [leader, *(one for one in replicas if one != leader)]
    return ordered
