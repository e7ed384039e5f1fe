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
METRICS = """\
# TYPE odradek_pipeline_records gauge
odradek_pipeline_records{place="kafka.loaded"} 10000000
odradek_pipeline_output_bytes 3000000
odradek_pipeline_shuffle_bytes 250000
odradek_pipeline_spilled_bytes 0
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


@pytest.mark.parametrize("name", ["pipeline-tables-10m", "pipeline-tables-plain-10m"])
def test_costs_of_tables_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.setattr(spark, "require", lambda _: None)
    monkeypatch.setattr(spark, "find_spec", lambda _: True)
    job = ToolRun("127.0.0.1:9092", "clicks", LONG[name], 0, tmp_path)
    command = job.load.tool.command(job)
    assert command[command.index("--bootstrap") + 1] == job.bootstrap
    Path(command[command.index("--metrics-file") + 1]).write_text(METRICS)
    data = tmp_path / "tables/kafka/loaded/data/day=1"
    data.mkdir(parents=True)
    for number, size in enumerate((1_000_000, 2_000_000)):
        (data / f"{number}.parquet").write_bytes(bytes(size))

    done = job.load.tool.parse(LOADED.replace("300000", "10000000"), job)
    assert (done.records, done.size_bytes, done.seconds) == (10_000_000, 1_000_000_000, 7.5)
    assert done.figures == {"written_mb": 3, "shuffled_mb": 0.25, "spilled_mb": 0, "file_mb": 1.5}
