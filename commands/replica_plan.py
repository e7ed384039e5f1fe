"""Replicas of a topic spread over brokers, with as few moves as an even load allows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

Replicas = dict[int, list[int]]
"""The brokers that hold each partition, the preferred leader first."""


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
    while _moves_one(held, brokers, loads):
        pass
    return _led(held, brokers)


def _moves_one(held: Replicas, brokers: Sequence[int], loads: Counter[int]) -> bool:
    """Moves one replica from a broker to one that holds fewer by two at least; False where there is none to move."""
    for high, low in _uneven(brokers, loads):
        movable = [
            replicas_here for replicas_here in held.values() if high in replicas_here and low not in replicas_here
        ]
        if movable:
            replicas_here = max(movable, key=lambda one: one.index(high))  # rather a follower than a preferred leader
            replicas_here[replicas_here.index(high)] = low
            loads[high] -= 1
            loads[low] += 1
            return True
    return False


def _uneven(brokers: Sequence[int], loads: Counter[int]) -> Iterator[tuple[int, int]]:
    """Yields brokers that hold too much with those that hold too little, the most uneven first."""
    pairs = ((high, low) for high, low in permutations(brokers, 2) if loads[high] - loads[low] > 1)
    yield from sorted(pairs, key=lambda pair: (loads[pair[1]] - loads[pair[0]], pair))


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
