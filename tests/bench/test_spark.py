"""Tests how the benchmark parses the output of `odradek pipeline`."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import spark
from bench.figures import ToolResult
from bench.load import Tool, ToolRun
from bench.loads import LOADS, LONG
from bench.tools import BadOutput

GENERATED = """\
clicks: 300000 records in 12.5 s, 24000/s
  by partition: 0: 74833, 1: 75016, 2: 75271, 3: 74880
"""
LOADED = """\
  clicks-0 offsets 0 to 74832
./store: 300000 records, 0 quarantined, run 20260131T120000Z-0a1b2c3d
  in 7.5 s, 40000/s
"""
JOB = ToolRun("127.0.0.1:9092", "clicks", LOADS["pipeline-load"], 0, Path("/nowhere"))


@pytest.mark.parametrize(("tool", "output", "seconds"), [(spark.GENERATE, GENERATED, 12.5), (spark.LOAD, LOADED, 7.5)])
def test_records_and_seconds_are_read(tool: Tool, output: str, seconds: float) -> None:
    assert tool.parse(output, JOB) == ToolResult(300_000, 60_000_000, seconds)


@pytest.mark.parametrize("output", ["", LOADED.replace("300000", "299999"), LOADED.replace("0 quar", "1 quar")])
def test_a_load_of_other_records_has_failed(output: str) -> None:
    with pytest.raises(BadOutput, match="not 300000 records"):
        spark.LOAD.parse(output, JOB)


def test_ten_million_are_loaded_only_when_they_are_asked_for() -> None:
    assert not {*LONG} & {*LOADS}
    assert LONG["pipeline-load-10m"].records == 10_000_000
