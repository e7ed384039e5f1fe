"""The failures of a cluster, and their repairs: a method for each."""

from __future__ import annotations

import asyncio

from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from tests.simulation.cluster.controller import HOST
from tests.simulation.cluster.hosts import Hosts

ALONE = "alone"
"""A topic whose partitions have one replica each."""


class Strikes(Hosts):
    """Causes failures in a cluster."""

    async def strike(self, kind: str = "") -> None:
        """Causes or repairs the named failure, or a random one."""
        kind = kind or self.dice.choices(KINDS, WEIGHTS)[0]
        self.history.note("strike", kind)
        self.history.counts[kind] += 1
        await getattr(self, f"_{kind}")()

    async def _kill(self) -> None:
        living = [node for node in self.living() if self.may_die(node, power=False)]
        if living:
            self.kill(self.dice.choice(living), power=False)

    async def _lose_power(self) -> None:
        living = [node for node in self.living() if self.may_die(node, power=True)]
        if living:
            self.kill(self.dice.choice(living), power=True)

    async def _kill_in_a_call(self) -> None:
        living = [node for node in self.living() if self.may_die(node, power=False)]
        if living:
            node = self.dice.choice(living)
            self.unclean.setdefault(node.node_id, False)
            self.history.forget_replicas(node.node_id)
            node.disk.crash_at = node.disk.calls + self.dice.randint(1, 30)

    async def _restart(self) -> None:
        dead = [node for node in self.brokers.values() if not node.is_alive]
        if dead:
            node = self.dice.choice(dead)
            self.history.forget_replicas(node.node_id)
            node.start()

    async def _bounce(self) -> None:
        """Kills a process, and restarts it before any other process has noticed."""
        living = [node for node in self.living() if self.may_die(node, power=False)]
        if living:
            node = self.dice.choice(living)
            self.kill(node, power=self.may_die(node, power=True) and self.dice.random() < 0.5)
            node.start()

    async def _replace_disk(self) -> None:
        """Replaces a machine by another one."""
        living = [node for node in self.living() if self.may_die(node, power=True)]
        if living:
            node = self.dice.choice(living)
            self.kill(node, power=True)
            node.replace_disk()

    async def _kill_all(self) -> None:
        """Kills all processes, the controller too; the machines continue."""
        living = self.living()
        if all(self.may_die(node, power=False) for node in living):
            for node in living:
                self.kill(node, power=False)
            await self._kill_controller()
            await asyncio.sleep(self.dice.choice((0, 2)))  # noticed, or not
            for node in living:
                if not node.is_alive:
                    node.start()

    async def _pause(self) -> None:
        """Stops a process for a while, as SIGSTOP does, for less or more than its session timeout."""
        processes = [node.process for node in self.living() if node.process is not None]
        process = self.dice.choice([*processes, self.controller.process])
        process.stop()
        self.loop.call_later(self.dice.choice((0.5, 1.7, 4)), process.go_on)

    async def _move(self) -> None:
        """Moves a partition with one replica to another broker."""
        alone = self.controller.image.topic(ALONE)
        if alone is not None and alone.partitions:
            target = self.dice.choice([*self.brokers])
            partition = ReassignablePartition(partition_index=self.dice.choice([*alone.partitions]), replicas=[target])
            topics = [ReassignableTopic(name=ALONE, partitions=[partition])]
            request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=1_000)
            await self.ask_controller(request, AlterPartitionReassignmentsResponse)

    async def _stop(self) -> None:
        living = [node for node in self.living() if node.server is not None]
        if living:
            node = self.dice.choice(living)
            self.history.forget_replicas(node.node_id)
            self.loop.create_task(node.stop())

    async def _cut(self) -> None:
        """Cuts a host off from some others, in one direction or both."""
        hosts = [HOST, *(node.host for node in self.brokers.values())]
        one = self.dice.choice([node.host for node in self.brokers.values()])
        is_alone = self.dice.random() < 0.5  # but for its clients
        for other in hosts if is_alone else self.dice.sample(hosts, self.dice.randint(1, len(hosts))):
            if other != one:
                self.network.cut(one, other)
                if is_alone or self.dice.random() < 0.6:
                    self.network.cut(other, one)

    async def _heal(self) -> None:
        self.network.heal()

    async def _lose_connection(self) -> None:
        self.network.lose_one()

    async def _elect(self) -> None:
        """Elects the preferred replicas as leaders."""
        request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1_000)
        await self.ask_controller(request, ElectLeadersResponse)

    async def _kill_controller(self) -> None:
        self.controller.process.die()
        self.controller.start()


KINDS = (
    "kill", "lose_power", "kill_in_a_call", "restart", "bounce", "stop", "cut", "heal", "lose_connection", "elect",
    "kill_controller", "replace_disk", "kill_all", "pause", "move",
)  # fmt: skip
WEIGHTS = (6, 6, 4, 16, 4, 4, 10, 10, 4, 6, 2, 3, 2, 6, 3)
