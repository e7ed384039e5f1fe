"""Tests the commands of the tools, and the parsers of their output as Apache Kafka 4.3.1 prints it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import tools
from bench.figures import ToolResult
from bench.load import Load, Parse, Payload, ToolRun
from bench.loads import LOADS
from bench.tools import BadOutput

PRODUCED = """\
Reading payloads from: /tmp/x.txt
Number of messages read: 1000
100000 records sent, 20000.0 records/sec (19.07 MB/sec), 9.0 ms avg latency, 200.0 ms max latency.
300000 records sent, 150000.000000 records/sec (143.05 MB/sec), 12.34 ms avg latency, 301.00 ms max latency, \
4 ms 50th, 60 ms 95th, 110 ms 99th, 140 ms 99.9th.
"""
CONSUMED = """\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, \
fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-01-02 03:04:05:678, 2026-01-02 03:04:07:678, 1.9073, 0.9537, 2000, 1000.0000, 1500, 500, 3.8147, 4000.0000
"""
SHARED = """\
start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms
2026-01-02 03:04:05:678, 2026-01-02 03:04:07:678, 1.9073, 0.9537, 1000.0000, 2000, 1000
"""
ECHOED = """\
0\t9.5
1000\t0.4
Avg latency: 0.6250 ms
Percentiles: 50th = 0, 99th = 1, 99.9th = 3
"""


def job(load: Load, work: Path = Path("/nowhere")) -> ToolRun:
    return ToolRun("127.0.0.1:9092", "topic", load, 2, work)


def test_the_producers_last_line_is_the_total() -> None:
    work = tools.parse_producer_performance(PRODUCED, job(LOADS["produce"]))
    assert (work.records, work.size_bytes, work.seconds) == (300_000, 300_000_000, 2.0)
    assert work.figures == {"mean_ms": 12.34, "p50_ms": 4.0, "p99_ms": 110.0, "p999_ms": 140.0}


@pytest.mark.parametrize(("output", "seconds"), [(CONSUMED, 0.5), (SHARED, 1.0)])
def test_a_consumers_columns_are_found_by_their_names(output: str, seconds: float) -> None:
    work = tools.parse_consumer_performance(output, job(LOADS["consume"]._replace(records=2_000)))
    assert work == ToolResult(2_000, 1_999_949, seconds)


def test_a_consumer_that_gave_up_early_has_failed() -> None:
    with pytest.raises(BadOutput, match="2000 of 2001 records arrived"):
        tools.parse_consumer_performance(CONSUMED, job(LOADS["consume"]._replace(records=2_001)))


def test_end_to_end_latency_is_read_as_its_mean() -> None:
    load = LOADS["latency-jvm"]._replace(records=1_000, record_bytes=100)
    assert tools.parse_end_to_end_latency(ECHOED, job(load)) == ToolResult(1_000, 100_000, 0.625, {"mean_ms": 0.625})


def test_our_own_loops_print_their_work_as_json() -> None:
    work = ToolResult(10, 1_000, 0.5, {"p50_ms": 1.0})
    assert tools.parse_json(f"noise\n{json.dumps(work._asdict())}\n", job(LOADS["consume"])) == work


def test_the_floors_chunks_stand_for_the_records_of_every_client() -> None:
    load = LOADS["consume-fan-out"]._replace(records=1_000, record_bytes=100, clients=5)
    moved = json.dumps({"records": 3, "size_bytes": 3, "seconds": 2.0})
    assert tools.parse_pump(moved, job(load)) == ToolResult(5_000, 500_000, 2.0)


@pytest.mark.parametrize(
    "parse",
    [
        tools.parse_producer_performance,
        tools.parse_consumer_performance,
        tools.parse_end_to_end_latency,
        tools.parse_json,
    ],
)
@pytest.mark.parametrize("output", ["", "Exception in thread main\n"])
def test_output_without_a_total_is_an_error(parse: Parse, output: str) -> None:
    with pytest.raises(BadOutput):
        parse(output, job(LOADS["produce"]))


def test_a_producer_is_told_what_the_load_declares(tmp_path: Path) -> None:
    load = LOADS["produce-lz4"]._replace(rate=500)
    command = " ".join(tools.producer_performance(job(load, tmp_path)))
    assert "--num-records 2000000 --throughput 500" in command
    assert "--command-property acks=1 enable.idempotence=false compression.type=lz4" in command
    assert len((tmp_path / "log_lines-100.txt").read_text().splitlines()[0]) == load.record_bytes


def test_each_round_has_a_group_of_its_own() -> None:
    load = LOADS["consume-group"]
    first, second = (tools.consumer_performance(job(load)._replace(number=number)) for number in (0, 1))
    assert first != second


def test_the_floor_moves_what_compression_leaves(tmp_path: Path) -> None:
    plain = LOADS["consume"]._replace(payload=Payload.LOG_LINES, record_bytes=100, records=1_000)
    packed = LOADS["consume-lz4"]._replace(records=1_000)
    sizes = [int(tools.pump(job(load, tmp_path))[-2]) for load in (plain, packed)]
    assert sizes[0] == 100_000
    assert sizes[1] < 70_000
