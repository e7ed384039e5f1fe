"""Tests the commands, as a user types them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.main import main as run_line
from cli.table import JOBS
from tests.interop.brokers import Broker
from tests.interop.processes import free_port, run
from tests.pipeline.spark.records import create


def main(words: list[str]) -> int:
    return run_line(["pipeline", *words])


@pytest.fixture
def arguments(odradek: Broker, topic: str) -> list[str]:
    return ["--bootstrap", odradek.bootstrap, "--topic", topic]


@pytest.mark.usefixtures("spark")
def test_generate_load_audit(
    odradek: Broker, topic: str, arguments: list[str], store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    create(odradek, topic, 2)
    generate = ["generate", "--bootstrap", odradek.bootstrap, "--topic", topic, "--records", "500", "--seed", "3"]

    assert main(generate) == 0
    assert main(["load", *arguments, "--out", store]) == 0
    assert main(["audit", *arguments, "--store", store]) == 0
    assert main(generate) == 0
    assert main(["audit", *arguments, "--store", store, "--json-file", str(tmp_path / "audit.json")]) == 3
    assert main(["audit", *arguments, "--store", store, "--only-loaded"]) == 0
    out = capfd.readouterr().out
    assert "500 records, 0 quarantined" in out
    assert "NOT complete" in out
    assert '"clean": false' in (tmp_path / "audit.json").read_text()


@pytest.mark.usefixtures("spark")
def test_a_failure_is_one_line(store: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.cluster.REQUEST_TIMEOUT_S", 2)
    nobody = f"127.0.0.1:{free_port()}"
    assert main(["load", "--bootstrap", nobody, "--topic", "t", "--out", store]) == 1
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("odradek:")]
    assert lines[0].startswith(f"odradek: no broker answers at {nobody}")
    assert len(lines) == 1


def test_the_installed_command_finds_the_jobs(script: list[str]) -> None:
    text = run([*script, "--help"]).stdout.decode()
    assert all(f"\n  {job.removeprefix('pipeline ')} " in text for job in JOBS)
