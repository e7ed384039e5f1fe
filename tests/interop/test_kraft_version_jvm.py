"""Tests the upgrade of kraft.version: voters of the configuration become voters of the log, and can be changed
(KIP-853, KAFKA-16538), with the same answers as Apache Kafka's controllers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.either_node import Make
from tests.interop.jvm import command_of, tool
from tests.interop.processes import run
from tests.interop.several_controllers import SeveralControllers, lags, leader_of
from tests.waiting import eventually

SOON_S = 120
OURS, THEIRS = Make.ODRADEK, Make.APACHE

MAKES = {
    "Odradek": (OURS, OURS, OURS),
    "mixed": (OURS, THEIRS, OURS),
    "Apache Kafka": (THEIRS, THEIRS, THEIRS),
}


class Features:
    """kafka-features through a broker."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def ask(self, *words: str) -> str:
        """Returns what the tool says, without the node that it names."""
        ended = run(command_of("kafka-features", "--bootstrap-server", self._bootstrap, *words), check=False)
        return re.sub(r"(Local controller|Controller|Broker) \d+", r"\1 N", (ended.stdout + ended.stderr).decode())

    def upgrade(self) -> str:
        """Upgrades kraft.version to 1. Returns the tool's output if it failed, otherwise an empty string."""
        said = self.ask("upgrade", "--feature", "kraft.version=1")
        return "" if "kraft.version was upgraded to 1" in said else said

    @property
    def kraft_version(self) -> str:
        return "".join(re.findall(r"kraft\.version.*FinalizedVersionLevel: (\d+)", self.ask("describe")))


def changed(bootstrap: str, name: str) -> None:
    """Creates a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)], operation_timeout=SOON_S, request_timeout=SOON_S)[name].result(SOON_S)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "makes",
    [
        pytest.param(makes, marks=() if name == "Odradek" else pytest.mark.cluster, id=name)
        for name, makes in MAKES.items()
    ],
)
def test_voters_of_the_configuration_become_voters_of_the_log(tmp_path: Path, makes: Sequence[Make]) -> None:
    quorum = SeveralControllers(tmp_path, makes, are_static=True)
    broker = quorum.join(1)
    try:
        quorum.start()
        features = Features(broker.address)
        assert features.kraft_version in ("", "0")
        voters = set(quorum.nodes)
        eventually(lambda: set(lags(broker.address).values()), {0}, within_s=SOON_S)
        assert "only supports versions 0-1" in features.ask("upgrade", "--feature", "kraft.version=2")
        eventually(features.upgrade, "", within_s=SOON_S)  # rejected until each voter has told the leader its directory
        eventually(lambda: features.kraft_version, "1", within_s=SOON_S)
        assert features.upgrade() == "", "again"
        back = features.ask("downgrade", "--feature", "kraft.version=0")
        assert "Can't downgrade the version of this feature." in back
        assert features.kraft_version == "1"
        changed(broker.address, "before")

        leader_id = leader_of(broker.address)
        quorum.nodes[leader_id].kill9()  # its successor, and the voter itself, find the voters in the log
        changed(broker.address, "between")
        quorum.nodes[leader_id].start()
        eventually(lambda: set(lags(broker.address)), voters, within_s=SOON_S)

        described = tool("kafka-metadata-quorum", "--bootstrap-server", broker.address, "describe", "--replication")
        directories = {int(line.split()[0]): line.split()[1] for line in described.splitlines()[1:] if line}
        removed = next(node_id for node_id in quorum.nodes if node_id != leader_of(broker.address))
        tool(
            "kafka-metadata-quorum", "--bootstrap-server", broker.address, "remove-controller",
            "--controller-id", str(removed), "--controller-directory-id", directories[removed],
        )  # fmt: skip
        eventually(lambda: set(lags(broker.address)), voters - {removed}, within_s=SOON_S)
        changed(broker.address, "after")
    finally:
        quorum.forget()
