"""Runs share groups on a cluster whose brokers die, move and come back: no record is lost, and no completed record is
delivered again.

A failing run is its seed: `make simulate SEEDS=17 WORLDS=cluster_shares`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from broker.share.hosted import Hosted
from broker.share.persister import CoordinatorPersister
from broker.share.state_operations import StateOperation, WriteState
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.types import TopicPartition
from tests.simulation.cluster.clients import produce
from tests.simulation.cluster.courses import TOPIC
from tests.simulation.cluster.history import Breach, History
from tests.simulation.cluster.processes import ClusterLoop
from tests.simulation.cluster.sharing import MAX_DELIVERIES, ShareHistory, ShareMember
from tests.simulation.cluster.world import PARTITIONS, ClusterWorld, run_cluster

SEEDS = range(4)
GROUP = "sharing"
OF_GROUP, SET = 32, 0
MEMBERS = 3
DRAIN_S = 60
OPTIONS = {
    "group.share.delivery.count.limit": str(MAX_DELIVERIES),
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "300",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.session.timeout.ms": "3000",
    "group.share.session.timeout.ms": "3000",
    "group.share.initialize.retry.interval.ms": "1000",
    "request.timeout.ms": "700",
    "offsets.commit.timeout.ms": "1000",
    "share.coordinator.write.timeout.ms": "1000",
}


class ShareWorld(ClusterWorld):
    """Producers with acks=all, and a group whose members accept, release, reject and forget records."""

    def __init__(self, loop: ClusterLoop, options: Mapping[str, str]) -> None:
        super().__init__(loop, options)
        self.shared = ShareHistory()
        self.members: list[ShareMember] = []

    async def _create(self) -> None:
        await super()._create()
        config = AlterableConfig(name="share.auto.offset.reset", config_operation=SET, value="earliest")
        resource = AlterConfigsResource(resource_type=OF_GROUP, resource_name=GROUP, configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        await self.ask_controller(request, IncrementalAlterConfigsResponse)

    def _begin_clients(self) -> None:
        for index in range(PARTITIONS):
            client = self.client(f"producer{index}")
            client.process.spawn(produce(client, [TopicPartition(TOPIC, index)], -1))
        self.members = [ShareMember(self.client(f"m{number}"), GROUP, TOPIC, self.shared) for number in range(MEMBERS)]
        for member in self.members:
            member.start()

    async def _rests(self) -> bool:
        """True once the replicas are complete and all records were delivered; by now members accept every record."""
        for member in self.members:
            member.accepts_all = True
        deadline_s = self.loop.time() + DRAIN_S
        rests = await super()._rests()
        while rests and self._undelivered() and self.loop.time() < deadline_s:  # noqa: ASYNC110 (members tell nobody)
            await asyncio.sleep(0.3)
        for name, offset in self._undelivered():
            self.history.breach(Breach.LOST, f"{name}: nobody of the group got offset {offset}")
        return rests

    def _undelivered(self) -> list[tuple[TopicPartition, int]]:
        return [
            (name, offset)
            for name, acknowledged in self.history.acknowledged.items()
            if name.topic == TOPIC
            for offset in acknowledged
            if offset not in self.shared.delivered[name]
        ]


def run_shares(seed: int) -> History:
    return run_cluster(seed, options=OPTIONS, kind=ShareWorld)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_share_record_is_lost_or_comes_again(seed: int) -> None:
    history = run_shares(seed)
    assert not history.breaches, "; ".join(map(str, history.breaches))


def test_records_are_delivered_and_acknowledged() -> None:
    counts: Counter[str] = Counter()
    for seed in SEEDS[:2]:
        counts += run_shares(seed).counts
    assert counts["delivered"] > 100
    assert counts["acknowledgement 0"] > 20


def write_nothing(patch: pytest.MonkeyPatch) -> None:
    """A fault: a leader believes that the state of its share partitions is written."""

    submit = CoordinatorPersister.submit

    def unwritten(persister: CoordinatorPersister, operation: StateOperation[object]) -> asyncio.Future[object]:
        if not isinstance(operation, WriteState):
            return submit(persister, operation)
        written: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        written.set_result(None)
        return written

    patch.setattr(CoordinatorPersister, "submit", unwritten)


def begin_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """A fault: a group forgets all records from before it was loaded."""
    patch.setattr(Hosted, "_initial_offset", lambda hosted: hosted.partition.high_watermark)


@pytest.mark.parametrize(
    ("plant", "breach"),
    [
        (write_nothing, Breach.DELIVERED),
        pytest.param(begin_at_the_end, Breach.LOST, marks=pytest.mark.source_only),
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], breach: Breach, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(breach in {one.breach for one in run_shares(seed).breaches} for seed in range(10))
