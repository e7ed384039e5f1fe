"""Follows the steps of docs/cluster.md: ports of this machine stand for hosts, folders for their disks."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.cluster_page import Command, commands, file_of, section
from tests.interop.brokers import Odradek
from tests.interop.jvm import tool
from tests.interop.processes import Server, free_port, run

pytestmark = pytest.mark.cluster

SOON_S = 120
HOSTS = ("controller", "kafka-1", "kafka-2", "kafka-3", "kafka-4")


class Machines:
    """The hosts of the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, Server] = {}
        ports = {"controller": 9093}
        self._addresses = {f"{host}.example:{ports.get(host, 9092)}": f"127.0.0.1:{free_port()}" for host in HOSTS}

    def here(self, text: str, host: str) -> str:
        """Returns a text of the page, with addresses and paths of this machine."""
        for name, address in self._addresses.items():
            text = text.replace(name, address)
        return text.replace("/var/lib/odradek", str(self.folder / host / "data")).replace(
            "/etc/odradek", str(self.folder / host)
        )

    def write(self, host: str, name: str, text: str) -> None:
        (self.folder / host).mkdir(exist_ok=True)
        (self.folder / host / name).write_text(self.here(text, host))

    def do(self, command: Command, host: str = "") -> str:
        """Runs a command of the page; returns its output."""
        program, *words = (self.here(word, host) for word in command.words)
        if program != "odradek":
            words = [str(self.folder / word) if word.endswith(".json") else word for word in words]
            return tool(program.removesuffix(".sh"), *words)
        if words[0] != "run":
            return run([Odradek.program, *words]).stdout.decode()
        self.running[host] = Server(host, self.folder / f"{host}.log")
        self.running[host].launch([Odradek.program, *words], r"^ready (\S+)$", 60)
        return ""

    def add_broker(self, node_id: int) -> None:
        """Adds a machine with the page's file of options; formats and runs it."""
        host = f"kafka-{node_id}"
        text = section("The brokers")
        file = file_of(text, "broker.properties")
        self.write(
            host,
            "broker.properties",
            file.replace("node.id=1", f"node.id={node_id}").replace("PLAINTEXT://kafka-1", f"PLAINTEXT://{host}"),
        )
        for command in commands(text):
            if command.host == "kafka-1.example":
                self.do(command, host)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    machines = Machines(tmp_path)
    yield machines
    for host in reversed(machines.running):
        machines.running[host].stop()
        machines.running[host].forget()


def test_three_machines_from_nothing_one_more_and_one_less(machines: Machines) -> None:
    text = section("The controllers")
    machines.write("controller", "controller.properties", file_of(text, "controller.properties"))
    for command in commands(text):
        if command.host == "controller.example":  # the other command is for voters of the configuration
            machines.do(command, "controller")
    for node_id in (1, 2, 3):
        machines.add_broker(node_id)
    assert "ready" in machines.running["kafka-1"].tail()
    create, describe = [one for one in commands(section("The brokers")) if not one.host]
    machines.do(create)
    assert re.search(r"LeaderId:\s+100\b", machines.do(describe))

    machines.add_broker(4)
    text = section("Moving partitions")
    (machines.folder / "moves.json").write_text(file_of(text, "moves.json"))
    execute, verify, elect = commands(text)
    assert "Successfully started partition reassignments" in machines.do(execute)
    deadline = time.monotonic() + SOON_S
    while "Reassignment of partition orders-0 is completed" not in (state := machines.do(verify)):
        assert time.monotonic() < deadline, state
    machines.do(elect)

    look, unregister = commands(section("Removing a broker"))
    assert "orders" not in machines.do(look)
    assert machines.running["kafka-1"].stop() == 0
    assert "no longer registered" in machines.do(unregister)
    listed = run(["kcat", "-b", machines.here("kafka-2.example:9092", ""), "-L"]).stdout.decode()
    assert sorted(re.findall(r"^  broker (\d+) at", listed, re.MULTILINE)) == ["2", "3", "4"]
    assert re.findall(r"partition \d, leader (\d), replicas: ([\d,]*\d),", listed) == [
        ("4", "4,2,3"), ("2", "2,3,4"), ("3", "3,4,2"),
    ]  # fmt: skip
