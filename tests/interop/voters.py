"""Changes the voters of a quorum as an operator does, with Odradek's commands."""

from __future__ import annotations

import json
from typing import Protocol

from tests.interop.brokers import Odradek
from tests.interop.processes import run
from tests.interop.several_controllers import described, lags
from tests.waiting import eventually

SOON_S = 120


class Startable(Protocol):
    """A controller that isn't a voter yet."""

    def start(self) -> None: ...


class Operator:
    """Changes the voters through a broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def ask(self, *words: str) -> tuple[int, str]:
        """Returns the exit code and the output of an `odradek` command."""
        ended = run([Odradek.program, *words, "--bootstrap", self.bootstrap], check=False)
        return ended.returncode, (ended.stdout + ended.stderr).decode()

    def change(self, *words: str) -> None:
        status, output = self.ask("cluster", "controller", *words, "--yes")
        assert status == 0, output

    def findings(self) -> set[tuple[str, str]]:
        """Returns subjects and commands of what the doctor finds about controllers."""
        _, output = self.ask("doctor", "--watch", "0s", "--free", "0", "-o", "json")
        listed = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        return {(found["subject"], found["command"]) for found in listed if found["subject"].startswith("controller")}

    def directories(self) -> dict[int, str]:
        """Returns the directories of the voters."""
        replicas = described(self.bootstrap)["replicas"]
        assert isinstance(replicas, list)
        return {replica["node"]: replica["directory"] for replica in replicas if replica["role"] != "observer"}

    def change_observer(self, node_id: int, *address: str) -> None:
        """Makes a controller a voter, once it follows and the cluster knows its address."""
        words = ("add", str(node_id), *address)
        eventually(lambda: self.ask("cluster", "controller", *words)[0], 0, within_s=SOON_S)
        self.change(*words)

    def add(self, node: Startable, node_id: int, *address: str) -> None:
        """Starts a controller, and makes it a voter once it follows. `address` is --address with its address, which a
        leader of Apache Kafka names only for voters."""
        node.start()
        self.change_observer(node_id, *address)
        eventually(lambda: lags(self.bootstrap).get(node_id) == 0, True, within_s=SOON_S)
