"""Runs producers that crash, stall, are fenced and retry, on a broker that is killed at any step: there is never an
anomaly.

A failing run is its seed: `pytest tests/simulation/test_transactions.py -k "seed and 17"`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from random import Random

import pytest

from broker.replica.partition import Partition
from broker.replica.replica import READ_UNCOMMITTED, LogOffsetSnapshot, Replica
from storage.appending.append import Settled
from storage.log import Appended
from storage.producers.entry import Origin, ProducerEntry, Verification
from tests.simulation.broker_world import BrokerWorld
from tests.simulation.transaction_clients import (
    PARTITIONS,
    TIMEOUT_MS,
    SimulatedConsumer,
    SimulatedProducer,
    read_to_the_end,
)
from tests.simulation.transaction_history import History, Kind, Outcome, Seen
from tests.simulation.virtual_time import run

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")  # by who was killed

SEEDS = range(12)
KILLS = 6
TRANSACTIONS = 12
OPTIONS = {
    "odradek.profile": "dev",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


async def simulate(seed: int, kills: int = KILLS, *, settle: bool = True) -> History:
    """Runs the world until all transactions have ended, unless a fault is planted."""
    dice = Random(seed)
    world, history = BrokerWorld(dice, OPTIONS), History()
    await world.start()
    await world.create_topic("t", PARTITIONS)
    producers = [SimulatedProducer(world, history, f"p{number}", v2=dice.random() < 0.6) for number in range(3)]
    zombie = SimulatedProducer(world, history, "p0", v2=producers[0].v2)
    zombie.count = 1_000
    consumers = [SimulatedConsumer(world, history, f"c{number}", committed=number < 2) for number in range(3)]
    reading = [asyncio.ensure_future(consumer.run()) for consumer in consumers]
    killing = asyncio.ensure_future(kill_now_and_then(world, kills))
    await asyncio.gather(*(producer.run(TRANSACTIONS) for producer in producers), zombie.run(3))
    await killing
    if world.is_dead:
        await world.revive()
    await asyncio.sleep(2 * TIMEOUT_MS / 1000 + 2)
    for task in reading:
        task.cancel()
    history.final = await read_to_the_end(world, committed=True)
    if settle:
        check_nothing_hangs(world)
    await world.stop()
    return history


async def kill_now_and_then(world: BrokerWorld, kills: int) -> None:
    for _ in range(kills):
        await asyncio.sleep(world.dice.uniform(0.1, 1))
        if world.dice.random() < 0.2:
            await world.stop()
        else:
            world.kill_soon()
        for _ in range(20):
            if world.is_dead:
                break
            await asyncio.sleep(0.05)
        world.kill_now()
        await world.revive()


def check_nothing_hangs(world: BrokerWorld) -> None:
    """Checks that no transaction is open, neither at its coordinator nor in a log."""
    broker = world.server.broker
    assert {transaction.state.text for transaction in broker.transactions.all()} <= {
        "Empty",
        "CompleteCommit",
        "CompleteAbort",
    }
    for partition in broker.replicas:
        assert partition.log.first_unstable_offset is None, partition.name
        assert partition.last_stable_offset == partition.high_watermark


@pytest.mark.parametrize("seed", SEEDS)
def test_no_anomaly_whatever_is_killed(seed: int) -> None:
    history = run(lambda: simulate(seed))
    assert history.anomalies() == []
    outcomes = {transaction.outcome for transaction in history.transactions}
    assert Outcome.COMMITTED in outcomes


# The checker finds what is planted


def lose_writes(patch: pytest.MonkeyPatch) -> None:
    """A fault: every tenth append of a client is acknowledged, but not made."""
    append, calls = Partition.append, count(1)

    def forgetful(
        self: Partition, records: memoryview, now_ms: int, origin: Origin = Origin.CLIENT,
        guard: Verification | None = None, for_all: bool = False, settled: Settled | None = None,
    ) -> Appended:  # fmt: skip
        if origin is Origin.CLIENT and not next(calls) % 10:
            return Appended(self.log.log_end_offset, self.log.log_end_offset, -1, 0, False)
        return append(self, records, now_ms, origin, guard, for_all, settled)

    patch.setattr(Partition, "append", forgetful)


def take_duplicates(patch: pytest.MonkeyPatch) -> None:
    """A fault: sequence numbers are not checked."""
    patch.setattr(ProducerEntry, "find_duplicate", lambda *_: None)
    patch.setattr(ProducerEntry, "_check_sequence", lambda *_: None)


def hide_aborts(patch: pytest.MonkeyPatch) -> None:
    """A fault: fetches don't return the aborted transactions."""
    patch.setattr(Replica, "aborted_in", lambda *_: [])


def forget_stability(patch: pytest.MonkeyPatch) -> None:
    """A fault: consumers read beyond the last stable offset."""
    update_snapshot = Replica.update_snapshot
    patch.setattr(Replica, "update_snapshot", lambda self, into, _: update_snapshot(self, into, READ_UNCOMMITTED))


def go_back(patch: pytest.MonkeyPatch) -> None:
    """A fault: a consumer sometimes forgets its position."""
    poll, calls = SimulatedConsumer.poll, count(1)

    async def forgetful(self: SimulatedConsumer, partition: int) -> list[Seen]:
        if not next(calls) % 20:
            self.positions[partition] //= 2
        return await poll(self, partition)

    patch.setattr(SimulatedConsumer, "poll", forgetful)


def skip_batches(patch: pytest.MonkeyPatch) -> None:
    """A fault: a fetch begins later than requested."""
    read, calls = Replica.read, count(1)

    def hasty(
        self: Replica, snapshot: LogOffsetSnapshot, offset: int, max_bytes: int, at_least_one: bool
    ) -> memoryview:
        skipped = offset + 4
        if not next(calls) % 5 and skipped < snapshot.end:
            offset = skipped
        return read(self, snapshot, offset, max_bytes, at_least_one)

    patch.setattr(Replica, "read", hasty)


PLANTED: dict[Kind, Callable[[pytest.MonkeyPatch], None]] = {
    Kind.LOST_WRITE: lose_writes,
    Kind.DUPLICATE: take_duplicates,
    Kind.G1A: hide_aborts,
    Kind.G1B: forget_stability,
    Kind.NON_MONOTONIC: go_back,
    Kind.POLL_SKIP: skip_batches,
}


@pytest.mark.source_only
@pytest.mark.parametrize("kind", Kind)
def test_an_anomaly_that_is_planted_is_found(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[kind](monkeypatch)
    history = run(lambda: simulate(1, kills=2, settle=False))
    assert kind in {anomaly.kind for anomaly in history.anomalies()}
