"""The jobs of `odradek pipeline` as tools: generate an activity stream, and load it into a store with Spark."""

from __future__ import annotations

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from bench.figures import MB, ToolResult
from bench.load import Tool, ToolRun
from bench.peers.peer import Unavailable, require
from bench.tools import BadOutput

GENERATED = re.compile(r": (?P<records>\d+) records in (?P<seconds>[\d.]+) s")
LOADED = re.compile(r": (?P<records>\d+) records, 0 quarantined, .*\n\s+in (?P<seconds>[\d.]+) s")
SEED = 20240
TABLES = "tables"
TABLE = "kafka.loaded"
METRICS = "metrics.prom"
COSTS = {
    "written_mb": "odradek_pipeline_output_bytes",
    "shuffled_mb": "odradek_pipeline_shuffle_bytes",
    "spilled_mb": "odradek_pipeline_spilled_bytes",
}
"""Figures of what Spark's tasks wrote, and their metrics in the file of a load."""


def pipeline(name: str, job: ToolRun, *arguments: str) -> list[str]:
    """Returns the command line of a job. Raises Unavailable if Spark is not installed."""
    require("java")
    if find_spec("pyspark") is None:
        raise Unavailable("Spark is not installed: make setup-pipeline")
    odradek = str(Path(sys.executable).with_name("odradek"))
    return [odradek, "pipeline", name, "--bootstrap", job.bootstrap, *arguments]


def generate(job: ToolRun) -> list[str]:
    """Returns the command that generates events. They are always the same, except for the time of the last event."""
    sizes = "--records", str(job.load.records), "--seed", str(SEED), "--partitions", str(job.load.partitions)
    return pipeline("generate", job, "--topic", job.topic, *sizes)


def load(job: ToolRun) -> list[str]:
    """Returns the command that loads everything into an empty store."""
    store = job.work / "store"
    shutil.rmtree(store, ignore_errors=True)
    return pipeline("load", job, "--topic", job.topic, "--out", str(store))


def load_table(job: ToolRun) -> list[str]:
    """Returns the command that loads everything into a new Iceberg table, with a new catalog in SQLite."""
    folder = job.work / TABLES
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    catalog = ("--catalog", f"jdbc:sqlite:{folder}/catalog.db", "--warehouse", str(folder))
    return pipeline(
        "load", job, "--topic", job.topic, *catalog, "--table", TABLE, "--metrics-file", str(folder / METRICS)
    )


def load_table_plainly(job: ToolRun) -> list[str]:
    """Returns the command that does the same with Spark's own source and Iceberg's own writer."""
    command = load_table(job)
    return [sys.executable, "-m", "bench.plain_table", *command[command.index("load") + 1 :]]


def parsed_with_costs(output: str, job: ToolRun) -> ToolResult:
    """Returns the result of a load into a table, with what its tasks wrote."""
    folder = job.work / TABLES
    metrics = dict(line.rsplit(" ", 1) for line in (folder / METRICS).read_text().splitlines())
    sizes = [file.stat().st_size for file in folder.glob("**/data/**/*.parquet")]
    costs = {figure: float(metrics[name]) / MB for figure, name in COSTS.items()}
    costs["file_mb"] = sum(sizes) / max(1, len(sizes)) / MB
    return parsed(LOADED, output, job)._replace(figures=costs)


def parsed(pattern: re.Pattern[str], output: str, job: ToolRun) -> ToolResult:
    match = pattern.search(output)
    if not match or int(match["records"]) != job.load.records:
        raise BadOutput(f"not {job.load.records} records in {output[-500:]!r}")
    return ToolResult(job.load.records, job.load.size_bytes, float(match["seconds"]))


GENERATE = Tool("odradek pipeline generate", generate, lambda output, job: parsed(GENERATED, output, job))
LOAD = Tool("odradek pipeline load", load, lambda output, job: parsed(LOADED, output, job))
"""Its time is the job's time from its plan to its commit, without the start of Spark."""
LOAD_TABLE = Tool("odradek pipeline load --catalog", load_table, parsed_with_costs)
PLAIN_TABLE = Tool("Spark's Kafka source and Iceberg's writer", load_table_plainly, parsed_with_costs)
