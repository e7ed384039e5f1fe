"""Tests that voters of Apache Kafka are added and removed through an Odradek broker, which finds each new leader
(KIP-853)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interop.jvm import tool
from tests.interop.processes import free_port
from tests.interop.quorum import CONTROLLER_ID, ApacheNode, Quorum
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

SECOND_ID = 101
SOON_S = 60


class Voters:
    """The quorum's voters, described and changed through one broker."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def _ask(self, *words: str, config: Path | None = None) -> str:
        given = () if config is None else ("--command-config", str(config))
        return tool("kafka-metadata-quorum", "--bootstrap-server", self._bootstrap, *given, *words)

    def add(self, controller: ApacheNode) -> None:
        """Adds a running controller, which is an observer until then."""
        self._ask("add-controller", config=controller.data.with_name(f"{controller.data.name}.properties"))

    def remove(self, node_id: int, directory_id: str) -> str:
        directory = ("--controller-directory-id", directory_id)
        return self._ask("remove-controller", "--controller-id", str(node_id), *directory)

    @property
    def leader_id(self) -> int:
        (leader_id,) = re.findall(r"LeaderId:\s+(\d+)", self._ask("describe", "--status"))
        return int(leader_id)

    def with_directories(self) -> dict[int, str]:
        """Returns the voters with the ids of their directories."""
        described = self._ask("describe", "--replication").splitlines()[1:]
        return {int(one.split()[0]): one.split()[1] for one in described if one.split()[-1] in ("Leader", "Follower")}


def a_second_controller(quorum: Quorum, folder: Path) -> ApacheNode:
    """Starts a controller that isn't a voter yet."""
    listening = {"listeners": f"CONTROLLER://127.0.0.1:{free_port()}"}
    settings = {**quorum.joining, "process.roles": "controller", "node.id": str(SECOND_ID), **listening}
    return ApacheNode(folder / "second", settings, "--no-initial-controllers")


def test_the_first_controller_makes_way_for_another(tmp_path: Path, topic: str) -> None:
    quorum = Quorum(tmp_path)
    broker, second = quorum.odradek(1), a_second_controller(quorum, tmp_path)
    nodes = (quorum.controller, second, broker)
    try:
        for node in nodes:
            node.start()
        voters = Voters(broker.bootstrap)
        with pytest.raises(AssertionError, match="VoterNotFoundException"):
            voters.remove(SECOND_ID, "MvDxzVmcRsaTz33bUuRU6A")
        voters.add(second)
        first_and_second = voters.with_directories()
        assert set(first_and_second) == {CONTROLLER_ID, SECOND_ID}
        voters.remove(CONTROLLER_ID, first_and_second[CONTROLLER_ID])
        eventually(lambda: voters.leader_id, SECOND_ID)
        assert set(voters.with_directories()) == {SECOND_ID}
        quorum.controller.stop()
        create = ("--create", "--topic", topic, "--replication-factor", "1")
        tool("kafka-topics", "--bootstrap-server", broker.bootstrap, *create)
    finally:
        for node in reversed(nodes):
            node.stop()
            node.forget()
