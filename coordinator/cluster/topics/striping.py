"""Spreads the replicas of new partitions over brokers and racks.

The first replicas of partitions go to one rack after the other. The other replicas of a partition go to the following
racks, so that a rack has two of them only if there are more replicas than racks. In a rack, unfenced brokers come
first, and become leaders in turn. After as many partitions as there are unfenced brokers, the racks and brokers are
shuffled, so that different brokers share partitions.

Source: Kafka's StripedReplicaPlacer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


class UsableBroker(NamedTuple):
    """A broker that new replicas may be placed on."""

    broker_id: int
    rack: str | None
    fenced: bool


def mixed(seed: int) -> int:
    """Returns 64 well-mixed bits of a seed (Steele, Lea and Flood's SplitMix64)."""
    bits = (seed + GOLDEN) & MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def shuffled(items: Sequence[T], seed: int) -> list[T]:
    """Returns the items in an order that depends on the seed (Fisher and Yates)."""
    order = list(items)
    for last in range(len(order) - 1, 0, -1):
        seed = mixed(seed)
        other = seed % (last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def rotated(items: Sequence[T], by: int) -> list[T]:
    """Returns the items from index `by` on, followed by the items before it."""
    start = by % len(items) if items else 0
    return [*items[start:], *items[:start]]


class Rack:
    """The brokers of a rack, in their current order."""

    def __init__(self, unfenced: list[int], fenced: list[int]) -> None:
        self.unfenced = unfenced
        self.fenced = fenced
        self.led = 0
        """Number of partitions whose leader is in this rack."""

    def brokers(self) -> list[int]:
        """Returns all brokers, the next leader first."""
        return [*rotated(self.unfenced, self.led), *rotated(self.fenced, self.led)]


class Striping:
    """Places one partition after the other. The seed selects the first rack and its first broker."""

    def __init__(self, brokers: Sequence[UsableBroker], seed: int) -> None:
        self._seed = mixed(seed)
        self._racks = [
            Rack(rotated(rack.unfenced, self._seed >> 8), rotated(rack.fenced, self._seed >> 8))
            for rack in _racks(brokers)
        ]
        self._first_rack = self._seed
        self._turn = 0
        self.broker_count = len(brokers)
        self.unfenced_count = sum(not broker.fenced for broker in brokers)

    def place(self, replication_factor: int) -> tuple[int, ...]:
        """Returns the brokers of the next partition; the first is the leader, which is unfenced. Needs at least one
        unfenced broker, and as many brokers as replicas.
        """
        if self._turn >= self.unfenced_count:
            self._reorder()
        order = rotated(self._racks, self._first_rack)
        brokers = [rack.brokers() for rack in order]
        leaders = next(at for at, rack in enumerate(order) if rack.unfenced)
        order[leaders].led += 1
        replicas = [brokers[leaders].pop(0)]
        turn = 0
        while len(replicas) < replication_factor:
            in_rack = brokers[turn % len(order)]
            if in_rack and turn != leaders:  # the leader has already taken its rack's first turn
                replicas.append(in_rack.pop(0))
            turn += 1
        self._turn += 1
        self._first_rack += 1
        return tuple(replicas)

    def _reorder(self) -> None:
        self._seed = mixed(self._seed)
        self._racks = [
            Rack(shuffled(rack.unfenced, self._seed), shuffled(rack.fenced, self._seed))
            for rack in shuffled(self._racks, self._seed)
        ]
        self._turn = 0


def _racks(brokers: Sequence[UsableBroker]) -> list[Rack]:
    """Returns the racks, sorted by name; brokers without a rack form a rack of their own."""
    racks: dict[str | None, Rack] = {}
    for broker in sorted(brokers):
        rack = racks.setdefault(broker.rack, Rack([], []))
        (rack.fenced if broker.fenced else rack.unfenced).append(broker.broker_id)
    return [racks[name] for name in sorted(racks, key=lambda name: (name is not None, name or ""))]
