"""Tests the order of a broker's start: it leads nothing before its partitions are open and its coordinators are ready,
and in a cluster it refuses connections until then."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvloop

from broker.metadata.node import Node, NodeState
from broker.metadata.remote_node import RemoteNode
from programs.run.server import Server
from protocol.types import TopicPartition
from tests.broker.asking import batch, fetch, produce
from tests.broker.controllers import formatted, serving_controller
from tests.broker.inprocess import InProcess

PARTITIONS = 3
OPTIONS = {"offsets.topic.num.partitions": "2", "offsets.topic.replication.factor": "1"}


class Seen(NamedTuple):
    """The state of the broker when it asks to be unfenced."""

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
    """Returns the data directory of a broker with records and groups."""
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


def may_connect(server: Server) -> bool:
    (listener,) = server.advertised
    try:
        socket.create_connection((listener.host, listener.port)).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_broker_of_a_cluster_refuses_connections_until_it_may_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that could connect earlier would wait, although another broker leads or coordinates in its place."""
    seen: list[tuple[str, bool]] = []

    def watch(server: Server, name: str) -> None:
        step = getattr(RemoteNode, name)

        async def watched(*arguments: Any) -> None:
            seen.append((name, may_connect(server)))
            await step(*arguments)

        monkeypatch.setattr(RemoteNode, name, watched)

    async def joined() -> None:
        async with serving_controller(tmp_path / "controller") as controller:
            (listener,) = controller.advertised
            joining = {
                "process.roles": "broker",
                "node.id": "1",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": f"{listener.host}:{listener.port}",
            }
            broker = InProcess(Path(formatted(tmp_path / "broker", 1)), joining)
            watch(broker.server, "register")
            watch(broker.server, "unfence")
            async with broker:
                seen.append(("ready", may_connect(broker.server)))

    uvloop.run(joined())  # as in production: a connection has only what uvloop calls
    assert seen == [("register", False), ("unfence", True), ("ready", True)]


async def test_clients_of_a_node_that_is_its_own_controller_wait_while_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other broker can lead or coordinate in its place."""
    broker, seen = InProcess(tmp_path), []
    register = Node.register

    async def watched(*arguments: Any) -> None:
        seen.append(may_connect(broker.server))
        await register(*arguments)

    monkeypatch.setattr(Node, "register", watched)
    async with broker:
        assert seen == [True]
