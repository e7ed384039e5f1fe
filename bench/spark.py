"""The jobs of `odradek pipeline` as tools: generate an activity stream, and load it into a store with Spark."""

from __future__ import annotations

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from bench.figures import ToolResult
from bench.load import Tool, ToolRun
from bench.peers.peer import Unavailable, require
from bench.tools import BadOutput

GENERATED = re.compile(r": (?P<records>\d+) records in (?P<seconds>[\d.]+) s")
LOADED = re.compile(r": (?P<records>\d+) records, 0 quarantined, .*\n\s+in (?P<seconds>[\d.]+) s")
SEED = 20240


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


def parsed(pattern: re.Pattern[str], output: str, job: ToolRun) -> ToolResult:
    match = pattern.search(output)
    if not match or int(match["records"]) != job.load.records:
        raise BadOutput(f"not {job.load.records} records in {output[-500:]!r}")
    return ToolResult(job.load.records, job.load.size_bytes, float(match["seconds"]))


GENERATE = Tool("odradek pipeline generate", generate, lambda output, job: parsed(GENERATED, output, job))
LOAD = Tool("odradek pipeline load", load, lambda output, job: parsed(LOADED, output, job))
"""Its time is the job's time from its plan to its commit, without the start of Spark."""
