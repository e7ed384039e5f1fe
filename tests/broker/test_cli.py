"""Tests the command line: exit codes, and the lines on standard error."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from broker.config import BrokerConfig
from cli.main import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[BrokerConfig]:
    """Records the configs of brokers in place of running them."""
    configs: list[BrokerConfig] = []

    def run(config: BrokerConfig) -> int:
        configs.append(config)
        return 0

    server = ModuleType("programs.run.running")
    server.run = run  # type: ignore[attr-defined]  # stands for the module, so that no broker is put together
    monkeypatch.setitem(sys.modules, "programs.run.running", server)
    for name in [name for name in os.environ if name.startswith("KAFKA_")]:
        monkeypatch.delenv(name)
    return configs


def test_run_starts_a_broker_with_the_configuration(
    started: list[BrokerConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions = 2\nlog.dirs=/a\n")
    monkeypatch.setenv("KAFKA_LOG_RETENTION_MS", "7")
    assert main(["run", str(file), "--data", "/b", "--listen", "127.0.0.1:0", "--set", "node.id=5"]) == 0
    (config,) = started
    assert (config.num_partitions, config.data_dirs, config.node_id) == (2, ("/b",), 5)
    assert config.topic_defaults.retention_ms == 7
    assert config.bound_listeners[0].port == 0


def test_a_configuration_at_fault_ends_with_2_and_a_line_for_each_problem(
    started: list[BrokerConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--set", "num.partition=1", "--set", "node.id=x"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "odradek: --set: num.partition: unknown option; did you mean num.partitions?",
        "odradek: --set: Invalid value x for configuration node.id: Not a number of type INT",
    ]
    assert not started


def test_a_file_that_is_not_there_is_told(started: list[BrokerConfig], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "/nowhere/server.properties"]) == 2
    assert capsys.readouterr().err == "odradek: /nowhere/server.properties: No such file or directory\n"


def test_a_file_that_is_not_text_is_told(
    started: list[BrokerConfig], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(b"a=\xff")
    assert main(["run", str(file)]) == 2
    assert capsys.readouterr().err == f"odradek: {file}: it is not UTF-8 text\n"


def test_a_command_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "COMMAND" in capsys.readouterr().err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"odradek \S.* \((pure Python|compiled core)\)\n", capsys.readouterr().out)


def test_logs_are_json_where_there_is_no_terminal() -> None:
    program = "from broker.logging import get_logger; get_logger('a').bind(b=1).warning('what happened', c=[2])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    line = json.loads(done.stderr)
    assert done.stdout == ""
    assert {name: line[name] for name in ("event", "level", "logger", "b", "c")} == {
        "event": "what happened",
        "level": "warning",
        "logger": "a",
        "b": 1,
        "c": [2],
    }
    assert line["timestamp"].endswith("Z")


def test_what_storage_tells_of_damage_is_a_line_of_the_brokers_said_once() -> None:
    program = """
from broker.logging import take_over_storage
from storage.failure import tell
take_over_storage()
for _ in range(2):
    tell("batch is damaged", "a.log", offset=7)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    line = json.loads(done.stderr)
    assert (line["event"], line["what"], line["offset"], line["level"]) == ("batch is damaged", "a.log", 7, "warning")
