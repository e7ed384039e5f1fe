"""How a broker starts: it leads nothing before its partitions are open and its coordinators are there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from broker.metadata.node import Node, NodeState
from programs.run.server import Server
from protocol.types import TopicPartition
from tests.broker.asking import batch, fetch, produce
from tests.broker.inprocess import InProcess

PARTITIONS = 3
OPTIONS = {"offsets.topic.num.partitions": "2", "offsets.topic.replication.factor": "1"}


class Seen(NamedTuple):
    """The state of the broker as it asks to be unfenced."""

    state: NodeState
    open: set[TopicPartition]
    led: set[TopicPartition]
    hosted: int


def look(server: Server) -> Seen:
    broker = server.broker
    replicas = list(broker.replicas)
    led = {one.name for one in replicas if one.leads}
    return Seen(broker.node.state, {one.name for one in replicas}, led, len(broker.groups.shards))


@pytest.fixture(params=["stopped", "crashed"])
async def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The data directory of a broker with records and groups."""
    running, left = tmp_path / "running", tmp_path / "left"
    async with InProcess(running, OPTIONS) as broker:
        await broker.create_topic("t", PARTITIONS)
        await broker.server.broker.groups.leader_of("group")
        await produce(broker.client(), "t", batch(b"before"))
        await broker.settled()
        if request.param == "crashed":
            shutil.copytree(running, left)
    return left if request.param == "crashed" else running


async def test_a_broker_leads_nothing_before_all_it_has_is_open(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker, seen = InProcess(data, OPTIONS), []
    unfence = Node.unfence

    async def watched(node: Node) -> None:
        seen.append(look(broker.server))
        await unfence(node)

    monkeypatch.setattr(Node, "unfence", watched)
    all_of_them = {TopicPartition("t", index) for index in range(PARTITIONS)}
    all_of_them |= {TopicPartition("__consumer_offsets", index) for index in range(2)}
    async with broker:
        assert seen == [Seen(NodeState.RECOVERY, all_of_them, set(), 0)]
        assert look(broker.server) == Seen(NodeState.RUNNING, all_of_them, all_of_them, 2)
        assert b"before" in bytes((await fetch(broker.client(), "t")).records or b"")
