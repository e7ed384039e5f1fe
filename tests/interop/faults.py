"""Random faults of a cluster, from a seed: nodes that are killed, stopped, frozen, cut off or slow."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.interop.either_node import EitherNode
from tests.interop.mixture import SESSION_MS, Cluster
from tests.waiting import eventually

SESSION_S = SESSION_MS / 1000
MOST_S = 2 * SESSION_S
"""Maximum duration of a fault, two sessions, so that the controller notices some faults but not others."""
DELAY_S = (0.02, 0.3)
ROLES = ("leader", "follower", "controller")
IN_SYNC_AGAIN = 0.8
"""The probability that all replicas are in sync again before the next fault."""


class Struck(NamedTuple):
    """A kind of fault, and the role and software of its node."""

    what: str
    role: str
    who: str

    def __str__(self) -> str:
        return f"{self.what} {self.role} ({self.who})"


class Faults:
    """A series of faults, each in turn of a partition's leader, of its follower and of a controller."""

    def __init__(self, cluster: Cluster, topic: str, seed: int) -> None:
        self.counts: Counter[Struck] = Counter()
        self._cluster = cluster
        self._topic = topic
        self._chance = random.Random(seed)
        self._roles = self._deal()
        self._faults: dict[Callable[[EitherNode], None], int] = {
            self._kill: 10,
            self._stop: 1,
            self._freeze: 2,
            self._cut_off: 1,
            self._cut_off_from_controller: 1,
            self._slow: 1,
        }

    @property
    def kills(self) -> int:
        return sum(count for struck, count in self.counts.items() if struck.what == "kill")

    def strike(self) -> Struck:
        """Causes a fault of one node, and ends it; sometimes waits until all replicas are in sync. Returns a
        description."""
        role = next(self._roles)
        victim = self._victim(role)
        (fault,) = self._chance.choices([*self._faults], [*self._faults.values()])
        time.sleep(self._chance.uniform(0.1, 1.5))  # the time between faults, by the seed
        struck = Struck(fault.__name__.strip("_"), role, victim.make.value)
        self.counts[struck] += 1
        fault(victim)
        if self._chance.random() < IN_SYNC_AGAIN:
            self._cluster.all_in_sync(self._topic, self._cluster.assignments[self._topic])
        return struck

    def _deal(self) -> Iterator[str]:
        while True:
            yield from self._chance.sample(ROLES, len(ROLES))

    def _victim(self, role: str) -> EitherNode:
        cluster = self._cluster
        if role == "controller":
            return self._chance.choice(cluster.controllers)
        assignment = self._chance.choice([*enumerate(cluster.assignments[self._topic])])
        leaders: list[int] = []

        def is_led() -> bool:
            leaders[:] = cluster.leaders(self._topic)
            return bool(leaders) and min(leaders) > 0

        eventually(is_led, True)
        index, replicas = assignment
        leader = leaders[index]
        others = [node_id for node_id in replicas if node_id != leader]
        return cluster.members[leader if role == "leader" else self._chance.choice(others)]

    def _last(self) -> None:
        """Waits while a fault lasts."""
        time.sleep(self._chance.uniform(0.1, MOST_S))  # the length of a fault, by the seed

    # Faults

    def _kill(self, victim: EitherNode) -> None:
        victim.kill9()
        time.sleep(self._chance.choice((0, SESSION_S)))  # the session ends meanwhile, or does not
        victim.start()

    def _stop(self, victim: EitherNode) -> None:
        victim.end()
        victim.start()

    def _freeze(self, victim: EitherNode) -> None:
        """Stops a process, which may count as dead, and then continues as if nothing had happened."""
        victim.signal(signal.SIGSTOP)
        self._last()
        victim.signal(signal.SIGCONT)

    def _cut_off(self, victim: EitherNode) -> None:
        """Cuts a node off from all others; clients still reach a broker."""
        others = [node.node_id for node in self._cluster.nodes if node is not victim]
        self._cluster.network.cut(victim.node_id, *others)
        self._last()
        self._cluster.network.heal()

    def _cut_off_from_controller(self, victim: EitherNode) -> None:
        """Cuts a broker off from all controllers: it continues to replicate while it is fenced. If it is a
        controller's turn, one broker is chosen."""
        node_id = victim.node_id
        controllers = [node.node_id for node in self._cluster.controllers]
        if node_id in controllers:
            node_id = self._chance.choice([*self._cluster.members])
        self._cluster.network.cut(node_id, *controllers)
        self._last()
        self._cluster.network.heal()

    def _slow(self, victim: EitherNode) -> None:
        self._cluster.network.slow(victim.node_id, self._chance.uniform(*DELAY_S))
        self._last()
        self._cluster.network.heal()


def summary(counts: Counter[Struck]) -> str:
    """Returns a line for each kind of fault."""
    lines = (f"  {count:3} × {struck}" for struck, count in sorted(counts.items()))
    return "\n".join(lines)
