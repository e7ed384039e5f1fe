"""A broker whose partitions all have a second replica, which acknowledges records late: tests what is committed, and
when.

The lag is the model: only it moves the follower, so it knows what is committed without asking the broker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from enum import Enum
from random import Random

from broker.replica.partition import Partition
from broker.replica.replicas import Replicas
from broker.request.context import AnswerBuffers, Context
from protocol.types import TopicPartition
from tests.broker.following import acknowledge, follow
from tests.simulation.broker_world import BrokerWorld

OPTIONS = {
    "odradek.profile": "dev",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.min.record.lock.duration.ms": "1000",
}
PAUSE_S = 0.05
"""The average pause between the follower's fetches."""


class Breach(Enum):
    """Facts that no client may see before they are committed."""

    READ = "a record that is not committed"
    OFFSET = "a high watermark, last stable offset or end beyond what is committed"
    ACKNOWLEDGED = "an answer to Produce with acks=all"
    GROUP = "an answer of a group coordinator"
    TRANSACTION = "an answer of a transaction coordinator"
    MARKER = "a transaction that is complete without its marker"
    SHARED = "a record of a share group, or an answer of its coordinator"


class Lag:
    """The followers of all partitions, and their progress."""

    def __init__(self, replicas: Replicas, dice: Random) -> None:
        self.dice = dice
        self.committed: Counter[TopicPartition] = Counter()
        """The offset that each follower has acknowledged."""
        self.breaches: Counter[Breach] = Counter()
        self.checks: Counter[Breach] = Counter()
        self.trace: list[tuple[object, ...]] = []
        """The fetches of followers and the answers to clients, in order."""
        self._replicas = replicas

    def begin(self) -> None:
        """Gives every existing partition a follower."""
        for partition in self._replicas:
            self.committed[partition.name] = partition.high_watermark
            follow(partition)

    async def run(self) -> None:
        """Lets followers fetch, one after the other; a fetch may get only a part."""
        while True:
            await asyncio.sleep(self.dice.expovariate(1 / PAUSE_S))
            behind = [one for one in self._replicas if one.log_end_offset > self.committed[one.name]]
            if behind:
                partition = self.dice.choice(behind)
                self.reach(partition, self.dice.randint(self.committed[partition.name] + 1, partition.log_end_offset))

    def reach(self, partition: Partition, offset: int) -> None:
        """Gives the follower of a partition all records below the offset."""
        self.committed[partition.name] = offset
        self.trace.append((partition.name, offset))
        acknowledge(partition, offset)

    def catch_up(self) -> None:
        """Commits everything."""
        for partition in self._replicas:
            self.reach(partition, partition.log_end_offset)

    def sent(self, context: Context, answer: AnswerBuffers | None) -> None:
        """Checks every answer to a client."""
        self.trace.append((context.key, context.version, None if answer is None else sum(map(len, answer))))

    def check(self, breach: Breach, partition: Partition, offset: int) -> None:
        """Records a breach if not everything below the offset is committed."""
        self.checks[breach] += 1
        if offset > self.committed[partition.name]:
            self.breaches[breach] += 1


async def lagging_world(seed: int) -> tuple[BrokerWorld, Lag]:
    """Returns a broker with a topic of two partitions and all internal topics, whose followers lag from now on."""
    from tests.broker.transacting import TransactionalClient
    from tests.simulation.broker_world import SimulatedConnection

    dice = Random(seed)
    world = BrokerWorld(dice, OPTIONS)
    await world.start()
    await world.create_topic("t", 2)
    client = TransactionalClient(SimulatedConnection(world))
    await client.find("group", 0)
    await client.find("transfers", 1)
    await world.server.broker.shares.leader_of("group:topic:0")
    await asyncio.sleep(1)
    lag = Lag(world.server.broker.replicas, dice)
    world.server.broker.interceptors.add(lag.sent)
    lag.begin()
    return world, lag
