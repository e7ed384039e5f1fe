"""Tests the commands, as a user types them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cli.main import main as run_line
from cli.table import JOBS
from pipeline.cluster import Cluster
from pipeline.load import LoadOutcome
from pipeline.metrics import metrics_text
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
    metrics = tmp_path / "run.prom"
    assert main(["load", *arguments, "--out", store, "--metrics-file", str(metrics)]) == 0
    values = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in metrics.read_text().splitlines()
        if not line.startswith("#")
    }
    assert values[f'odradek_pipeline_records{{place="{store}"}}'] == 500
    assert values[f'odradek_pipeline_lag{{topic="{topic}",partition="0"}}'] == 0
    assert values["odradek_pipeline_output_bytes"] > 0
    assert (
        values['odradek_pipeline_task_seconds{quantile="1"}'] >= values['odradek_pipeline_task_seconds{quantile="0.5"}']
    )
    assert main(["audit", *arguments, "--store", store]) == 0
    assert main(generate) == 0
    assert main(["audit", *arguments, "--store", store, "--json-file", str(tmp_path / "audit.json")]) == 3
    assert main(["audit", *arguments, "--store", store, "--only-loaded"]) == 0
    out = capfd.readouterr().out
    assert "500 records, 0 quarantined" in out
    assert "NOT complete" in out
    assert '"clean": false' in (tmp_path / "audit.json").read_text()


@pytest.mark.usefixtures("spark")
def test_metrics_that_cannot_be_written_end_a_load_that_is_done(
    odradek: Broker, topic: str, arguments: list[str], store: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    create(odradek, topic, 1)
    nowhere = str(tmp_path / "missing" / "run.prom")
    assert main(["load", *arguments, "--out", store, "--metrics-file", nowhere]) == 1
    assert f"--metrics-file {nowhere}: No such file or directory; the records are loaded" in capfd.readouterr().err


def test_metrics_of_any_place_are_valid_text(spark: SparkSession, odradek: Broker) -> None:
    done = {'a\n"b"\\c': LoadOutcome("run", [], 1, 2, 0)}
    lines = metrics_text(spark, Cluster(odradek.bootstrap), done, 1.5).splitlines()
    assert 'odradek_pipeline_records{place="a\\n\\"b\\"\\\\c"} 1' in lines
    assert "odradek_pipeline_seconds 1.5" in lines
    assert not [line for line in lines if line.startswith("odradek_pipeline_lag")]
    named = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")} <= named


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
