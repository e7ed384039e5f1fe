"""Courses of a cluster's run: random, or towards the situation in which one kind of fault does harm."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from protocol.types import TopicPartition
from tests.simulation.cluster.broker import BrokerNode
from tests.simulation.cluster.controller import HOST
from tests.simulation.cluster.strikes import Strikes

TOPIC = "orders"
ROUNDS = 18
ROUND_S = 0.6
FAILOVER_S = 2.6
"""Time within which a broker without contact to the controller is fenced, and another broker leads."""

Course: TypeAlias = Callable[[Strikes], Awaitable[None]]


async def by_chance(world: Strikes) -> None:
    """Runs random events."""
    for _ in range(ROUNDS):
        await asyncio.sleep(world.dice.expovariate(1 / ROUND_S))
        await world.strike()


def leader(world: Strikes) -> BrokerNode | None:
    """Returns the broker that leads the first partition."""
    registered = world.controller.image.partition(TopicPartition(TOPIC, 0))
    return None if registered is None else world.brokers.get(registered.leader)


def cut_both_ways(world: Strikes, one: str, other: str) -> None:
    """Cuts the link between two hosts in both directions."""
    world.network.cut(one, other)
    world.network.cut(other, one)


async def leaders_are_alone(world: Strikes) -> None:
    """Cuts a leader off from all hosts except its clients, then lets it come back with its own records; then does the
    same to the next leader."""
    for _ in range(4):
        await asyncio.sleep(world.dice.uniform(0.3, 1))
        alone = leader(world)
        if alone is not None:
            for host in (HOST, *(node.host for node in world.brokers.values() if node is not alone)):
                cut_both_ways(world, alone.host, host)
        await asyncio.sleep(FAILOVER_S)
        world.network.heal()


async def leaders_are_zombies(world: Strikes) -> None:
    """Keeps a leader from learning that another broker leads."""
    for _ in range(4):
        await asyncio.sleep(world.dice.uniform(0.3, 1))
        zombie = leader(world)
        if zombie is not None:
            cut_both_ways(world, zombie.host, HOST)
        await asyncio.sleep(FAILOVER_S)
        world.network.heal()


async def two_fast_failovers(world: Strikes) -> None:
    """Kills a leader whose last records only one follower has. That follower leads, and is then cut off with its own
    records."""
    for _ in range(2):
        await asyncio.sleep(world.dice.uniform(0.5, 1))
        first = leader(world)
        if first is None or not first.is_alive:
            continue
        second, third = (node for node in world.brokers.values() if node is not first)
        cut_both_ways(world, first.host, second.host)
        await asyncio.sleep(0.5)
        world.kill(first, power=False)
        cut_both_ways(world, second.host, third.host)
        await asyncio.sleep(FAILOVER_S)
        cut_both_ways(world, second.host, HOST)
        await asyncio.sleep(FAILOVER_S)
        first.start()
        world.network.heal()
        await asyncio.sleep(1)


async def the_eligible_one_loses_its_power(world: Strikes) -> None:
    """Two replicas are in sync. One loses its power, then the other dies, which has all records: only that one may
    lead."""
    await asyncio.sleep(world.dice.uniform(2, 3))
    last = leader(world)
    if last is None:
        return
    former, eligible = (node for node in world.brokers.values() if node is not last)
    for node, power in ((former, False), (eligible, True), (last, False)):
        if node.is_alive:
            world.kill(node, power=power)
        await asyncio.sleep(FAILOVER_S)
    eligible.start()
    await asyncio.sleep(FAILOVER_S)
