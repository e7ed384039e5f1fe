"""Follows the how-to pages as an operator does, on this machine: names of hosts and folders are replaced, and systemctl
is played by the test."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.howto import SETTINGS, files, steps, text_of, write
from tests.interop.brokers import ALONE, Odradek
from tests.interop.processes import Server, free_port

pytestmark = pytest.mark.odradek_only

PATIENCE_S = 120
READY = r"^ready (\S+)$"


class Machine:
    """A machine on which a page is followed: its folders, and the services that its systemctl controls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places = {"/etc/odradek": str(folder), "/var/lib/odradek": str(folder / "lib")}
        self._services: dict[str, Server] = {}
        (folder / "lib").mkdir()
        (folder / "bin").mkdir()
        program = folder / "bin" / "odradek"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(Odradek.program)} "$@"\n')
        program.chmod(0o700)

    def here(self, text: str) -> str:
        """Returns a text of the page, with addresses and paths of this machine."""
        for name, other in self.places.items():
            text = text.replace(name, other)
        return text

    def do(self, command: str) -> str:
        """Runs a command and returns what it prints. Fails the test if its exit code is not 0."""
        if command.startswith("systemctl "):
            self._systemctl(*command.split()[1:])
            return ""
        path = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        ended = subprocess.run(
            ["bash", "-c", f"umask 077; {self.here(command)}"], cwd=self.folder, env={**os.environ, **path},
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert not ended.returncode, f"{command}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def _systemctl(self, verb: str, *words: str) -> None:
        name = words[-1]
        service = self._services.setdefault(name, Server(name, self.folder / f"{name}.log"))
        if verb in ("stop", "restart"):
            assert service.stop() == 0
        if verb in ("start", "restart", "enable"):
            options = name.removeprefix("odradek-").replace("@", "-")
            service.launch([Odradek.program, "run", str(self.folder / f"{options}.properties")], READY, PATIENCE_S)

    def end(self) -> None:
        for service in reversed(self._services.values()):
            service.kill9()
            service.forget()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.end()


@pytest.fixture
def with_broker(machine: Machine) -> Machine:
    """Returns a machine with one broker, as the Debian package installs it, with records in a topic."""
    port = free_port()
    machine.places["127.0.0.1:9092"] = machine.places["localhost:9092"] = f"127.0.0.1:{port}"
    options = f"node.id=1\nlisteners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs=/var/lib/odradek/broker-1\n"
    options += "".join(f"{name}={value}\n" for name, value in ALONE.items())
    write(machine.folder, "broker-1.properties", machine.here(options))
    os.environ["ODRADEK_BOOTSTRAP"] = f"127.0.0.1:{port}"
    machine.do("systemctl enable --now odradek-broker@1")
    machine.do("odradek topic create orders")
    machine.do("seq 100 | odradek produce orders")
    return machine


@pytest.fixture(autouse=True)
def without_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes what a test sets for its commands."""
    monkeypatch.setenv("ODRADEK_BOOTSTRAP", "")
    monkeypatch.delenv("ODRADEK_BOOTSTRAP")


def test_a_backup_is_made_verified_and_restored(with_broker: Machine) -> None:
    machine = with_broker
    for step in steps(text_of("backup", "One broker")):
        machine.do(step.command)
    machine.do("odradek topic delete orders --yes")
    for step in steps(text_of("backup", "Restore")):
        machine.do(step.command)
    assert machine.do("odradek consume orders --exit-at-end -f '%v\\n'").split() == [str(n) for n in range(1, 101)]
    for step in steps(text_of("backup", "One topic")):
        machine.do(step.command)
    assert machine.do("odradek consume restored --exit-at-end -f '%v\\n'").split() == [str(n) for n in range(1, 101)]


@pytest.mark.parametrize("page", SETTINGS)
def test_what_a_page_is_about_is_set(with_broker: Machine, page: str) -> None:
    with_broker.places |= {"12000": "2000", "9 seconds": "1 second"}  # the delays, in real time
    for step in steps(text_of(page)):
        ends = " --timeout 60s -n 3" if "share consume" in step.command else ""
        printed = with_broker.do(f"{step.command}{ends}")
        assert not ends or len(printed.splitlines()) == 3


def test_a_broker_is_upgraded(with_broker: Machine) -> None:
    machine = with_broker
    for title in ("One broker", "A cluster without downtime", "New features"):
        for step in steps(text_of("upgrade", title)):
            if not step.command.startswith("pip "):
                machine.do(step.command)
    assert '"end":100' in machine.do("odradek topic describe orders -o json")


def test_a_broker_runs_beside_a_suite_in_any_language(machine: Machine) -> None:
    port = free_port()
    machine.places["127.0.0.1:9092"] = machine.places["localhost:9092"] = f"127.0.0.1:{port}"
    os.environ["ODRADEK_BOOTSTRAP"] = f"127.0.0.1:{port}"
    commands = [step.command for step in steps(text_of("ci", "Without containers"))]
    started = machine.do(commands[0] + " echo $!")
    try:
        for command in commands[1:]:
            machine.do(command)
    finally:
        os.kill(int(started), 15)


def test_a_production_cluster_is_set_up(machine: Machine) -> None:
    page = text_of("production")
    ports = {name: free_port() for name in ("controller.example:9093", *ADDRESSES)}
    machine.places |= {address: f"localhost:{port}" for address, port in ports.items()}
    machine.places |= {f"{name}.example": "localhost" for name in ("controller", "kafka-1", "kafka-2", "kafka-3")}
    options = files(page)
    for name in ("controller.properties", "admin.properties"):
        write(machine.folder, name, machine.here(options[name]))
    for number in (1, 2, 3):
        own = options["broker-1.properties"].replace("node.id=1", f"node.id={number}")
        own = own.replace("/broker-1", f"/broker-{number}").replace("//kafka-1.", f"//kafka-{number}.")
        write(machine.folder, f"broker-{number}.properties", machine.here(own))
    for host, command in steps(page):
        machines = (1, 2, 3) if host == "kafka-1.example" else (1,)
        for number in machines:
            printed = machine.do(re.sub(r"\b(broker[-@])1\b", rf"\g<1>{number}", command))
    assert "no problem" in printed.lower() or not printed.strip()
    shop = "--config admin.properties -X sasl.username=shop -X sasl.password=shop-secret"
    machine.do(f"echo paid | odradek produce orders {shop}")
    assert machine.do(f"odradek consume orders -g billing -n 1 -f '%v' {shop}") == "paid"
    with pytest.raises(AssertionError, match=r"(?i)authoriz"):
        machine.do(f"odradek topic delete orders --yes {shop}")


ADDRESSES = [f"kafka-{number}.example:{port}" for number in (1, 2, 3) for port in (9092, 9094)]
