"""Runs transactions on a cluster whose brokers die, are cut off and come back: exactly once, with the coordinators on
any broker.

A failing run is its seed: `make simulate SEEDS=17 WORLDS=cluster_transactions`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker.produce import verification
from broker.produce.verification import Errors
from broker.shards.anywhere import Anywhere, Packing
from broker.shards.marker_requests import MARKERS
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.broker.transacting import TOPIC
from tests.simulation.cluster.history import Breach
from tests.simulation.cluster.processes import ClusterLoop, simulate
from tests.simulation.cluster.transactional import ClusterConsumer, ClusterProducer
from tests.simulation.cluster.world import ClusterWorld
from tests.simulation.transaction_clients import PARTITIONS, TIMEOUT_MS
from tests.simulation.transaction_history import History, Kind, Outcome

SEEDS = range(6)
TRANSACTIONS = 10
ROUNDS = 12
ROUND_S = 0.8
OPTIONS = {
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "request.timeout.ms": "700",
    "offsets.commit.timeout.ms": "1000",
}


class TransactionWorld(ClusterWorld):
    """Producers of both protocols, one of them with a second process of the same id, and consumers of both isolation
    levels."""

    def __init__(self, loop: ClusterLoop) -> None:
        super().__init__(loop, OPTIONS)
        self.transactions = History()
        self._producing: list[asyncio.Task[None]] = []
        self._reading: list[asyncio.Task[None]] = []

    async def _create(self) -> None:
        configs = [CreatableTopicConfig(name="min.insync.replicas", value="2")]
        topic = CreatableTopic(
            name=TOPIC, num_partitions=PARTITIONS, replication_factor=3, assignments=[], configs=configs
        )
        await self.controller.controller.submit(
            CreateTopicsRequest(topics=[topic], timeout_ms=1_000), CreateTopicsResponse
        )

    def _begin_clients(self) -> None:
        history = self.transactions
        producers = [
            ClusterProducer(self, history, f"producer{number}", f"p{number}", v2=self.dice.random() < 0.6)
            for number in range(3)
        ]
        zombie = ClusterProducer(self, history, "zombie", "p0", v2=producers[0].v2)
        zombie.count = 1_000
        self._producing = [*(producer.spawn(TRANSACTIONS) for producer in producers), zombie.spawn(3)]
        for number in range(2):
            consumer = ClusterConsumer(self, history, f"consumer{number}", committed=not number)
            self._reading.append(consumer.spawn(consumer.run()))

    async def live(self) -> None:
        """Runs all clients and failures to their end."""
        await self._begin()
        for _ in range(ROUNDS):
            await asyncio.sleep(self.dice.expovariate(1 / ROUND_S))
            await self.strike()
        await self._finish()
        if await self._rests():
            await self.settle()
        else:
            self.history.breach(Breach.STUCK, self._state())

    async def _finish(self) -> None:
        """Ends all failures, and lets producers end their transactions."""
        self.network.is_calm = True
        self.network.heal()
        for node in self.brokers.values():
            node.disk.crash_at = None
        while not all(producing.done() for producing in self._producing):
            for node in self.brokers.values():
                if not node.is_alive:
                    self.history.forget_replicas(node.node_id)
                    node.start()
            await asyncio.sleep(0.2)
        for producing in self._producing:
            producing.result()
        await asyncio.sleep(2 * TIMEOUT_MS / 1000 + 2)
        for reading in self._reading:
            reading.cancel()

    async def settle(self) -> None:
        """Reads all remaining records, and looks for transactions that hang."""
        reader = ClusterConsumer(self, History(), "at last", committed=True, loss=0)
        self.transactions.final = await reader.spawn(reader.read_all())
        for partitions in self.replicas.values():
            for partition in partitions:
                if partition.leads and partition.last_stable_offset != partition.high_watermark:
                    self.history.breach(Breach.STUCK, f"a transaction hangs in {partition}")


def run_transactions(seed: int) -> TransactionWorld:
    async def main(loop: ClusterLoop) -> TransactionWorld:
        world = TransactionWorld(loop)
        await world.live()
        return world

    return simulate(seed, main)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_anomaly_whoever_dies(seed: int) -> None:
    world = run_transactions(seed)
    assert not world.history.breaches, "; ".join(map(str, world.history.breaches))
    assert world.transactions.anomalies() == []
    outcomes = {transaction.outcome for transaction in world.transactions.transactions}
    assert Outcome.COMMITTED in outcomes


def send_no_markers(patch: pytest.MonkeyPatch) -> None:
    """A fault: a coordinator believes that its markers for other brokers are written, without sending them."""

    submit = Anywhere.submit

    def unsent(anywhere: Anywhere, broker_id: int, packing: Packing[Any, Any, Any], request: object) -> Any:
        if packing is not MARKERS:
            return submit(anywhere, broker_id, packing, request)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        written.set_result(None)
        return written

    patch.setattr(Anywhere, "submit", unsent)


def ask_no_coordinator(patch: pytest.MonkeyPatch) -> None:
    """A fault: a leader believes that partitions were added, without asking another broker's coordinator."""

    async def add(*_: object) -> Errors:
        return {}

    patch.setattr(verification, "_asked_elsewhere", add)


@pytest.mark.parametrize("plant", [send_no_markers, ask_no_coordinator])
def test_a_planted_fault_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(shows(run_transactions(seed)) for seed in range(1, 9))


def shows(world: TransactionWorld) -> bool:
    """True if a partition waits for a transaction forever, and its records are lost."""
    is_stuck = any(breach.breach is Breach.STUCK for breach in world.history.breaches)
    return is_stuck and Kind.LOST_WRITE in {anomaly.kind for anomaly in world.transactions.anomalies()}
