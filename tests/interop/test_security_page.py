"""Runs the ten commands of docs/security.md unchanged, with ports and folders of this machine."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import jvm
from tests.interop.brokers import READY_TIMEOUT_S, Odradek
from tests.interop.processes import Server, free_port

pytestmark = [pytest.mark.odradek_only, pytest.mark.security]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "security.md"
TITLE = "From nothing to SASL_SSL with access control"
FILES = ("server.properties", "admin.properties", "alice.properties")
TOOLS = ("kafka-topics", "kafka-acls", "kafka-console-producer", "kafka-console-consumer")
PATIENCE_S = 120


def section() -> str:
    match = re.search(rf"^## {TITLE}\n(.*?)(?=^## )", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert match, f"no section {TITLE}"
    return match[1]


class Host:
    """A machine on which the page is followed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = Server("odradek", folder / "odradek.log")
        self._port = free_port()
        self._programs = folder / "bin"
        self._programs.mkdir()
        self._install("odradek", [Odradek.program])
        for name in TOOLS:
            self._install(name, jvm.command_of(name))

    def _install(self, name: str, command: list[str]) -> None:
        program = self._programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o700)

    def here(self, text: str) -> str:
        """Returns a text of the page, with addresses and paths of this machine."""
        here = {"9093": str(self._port), "/etc/odradek": str(self.folder), "/var/lib/odradek": f"{self.folder}/data"}
        for name, other in here.items():
            text = text.replace(name, other)
        return text

    def write(self, name: str) -> None:
        """Writes a file of the page."""
        match = re.search(rf"^    # {re.escape(name)}\n((?:    .+\n)+)", section(), re.MULTILINE)
        assert match, f"no file {name}"
        file = self.folder / name
        file.touch(0o600)
        file.write_text(self.here(re.sub(r"^    ", "", match[1], flags=re.MULTILINE)))

    def do(self, command: str, *, check: bool = True) -> str:
        """Runs a command, and returns its output."""
        text = self.here(command)
        if text.endswith("&"):
            self.server.launch(
                shlex.split(text.removesuffix("&")), r"^ready (\S+)$", READY_TIMEOUT_S, self._path, self.folder
            )
            return ""
        ended = subprocess.run(
            ["bash", "-c", f"umask 077; {text}"], cwd=self.folder, env={**os.environ, **self._path},
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert not check or not ended.returncode, f"{text}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout + ended.stderr

    @property
    def _path(self) -> dict[str, str]:
        return {"PATH": f"{self._programs}:{os.environ['PATH']}"}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    made.server.stop()
    made.server.forget()


def test_ten_commands_make_a_broker_that_lets_in_whom_it_should(host: Host) -> None:
    for name in FILES:
        host.write(name)
    commands = re.findall(r"^    \$ (.+)$", section(), re.MULTILINE)
    assert len(commands) == 10
    *_, consumed = map(host.do, commands)
    assert consumed.startswith("first\n")
    as_alice = "--bootstrap-server localhost:9093 --command-config alice.properties"
    listed = host.do("kafka-acls --bootstrap-server localhost:9093 --command-config admin.properties --list")
    assert listed.count("principal=User:alice") == 5, (
        listed
    )  # WRITE, DESCRIBE, CREATE and READ of the topic, READ of the group
    refused = host.do(f"kafka-topics {as_alice} --create --topic others", check=False)
    assert "Authorization failed" in refused
    refused = host.do(f"kafka-acls {as_alice} --list", check=False)
    assert "ClusterAuthorizationException" in refused
