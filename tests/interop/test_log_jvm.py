"""Tests logs that we write, recover and truncate, read by Apache Kafka's kafka-dump-log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from protocol.records.compression import Compression
from storage.log import Log
from tests.interop import jvm
from tests.storage.writing import NOW_MS, PID, append, batch, config, end_transaction, open_log, read_all, values, write

SMALL = config(segment_bytes=4000, index_interval_bytes=200)

COMPLAINTS = re.compile(r"mismatch|misindexed|non-consecutive|not found|invalid|corrupt|exception|error|failed", re.I)


def fill(log: Log) -> None:
    """Writes records of every kind that a log may have."""
    sequence = 0
    for n in range(60):
        codec, at = list(Compression)[n % len(Compression)], NOW_MS + n * 7 % 50
        data = batch(f"{n}-a", f"{n}-b" * 20, timestamp=at, compression=codec, pid=PID, sequence=sequence)
        append(log, data, leader_epoch=n // 20)
        sequence += 2
    append(log, batch("aborted", pid=7, transactional=True), leader_epoch=3)
    write(log, "between", timestamp=NOW_MS + 500)
    end_transaction(log, commit=False, pid=7, leader_epoch=3)
    append(log, batch("open", pid=8, transactional=True), leader_epoch=3)


def dump(directory: Path) -> str:
    files = sorted(file for file in directory.iterdir() if file.suffix in (".log", ".index", ".timeindex", ".snapshot"))
    files += sorted(directory.glob("*.txnindex"))
    return jvm.tool("kafka-dump-log", "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files)))


def check(log: Log, directory: Path) -> None:
    output = dump(directory)
    assert [line for line in output.splitlines() if COMPLAINTS.search(line) and "isvalid: true" not in line] == []
    assert "isvalid: false" not in output
    printed = re.findall(r"^\| offset: (\d+) .*? payload: (.*)$", output, re.M)
    mine = [(str(r.offset), (r.value or b"").decode()) for r in read_all(log) if (r.key or b"") == b"key"]
    assert printed == mine


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


def test_a_log_that_was_closed(directory: Path) -> None:
    log = open_log(directory, SMALL)
    fill(log)
    log.flush(NOW_MS)
    log.close()
    check(log, directory)


def test_a_log_that_was_recovered(directory: Path) -> None:
    fill(open_log(directory, SMALL))
    with max(directory.glob("*.log")).open("ab") as file:
        file.write(b"torn")
    log = open_log(directory, SMALL, clean=False)
    assert log.recovered.cut is not None
    log.flush(NOW_MS)
    log.close()
    check(log, directory)


def test_a_log_that_was_truncated_and_written_on(directory: Path) -> None:
    log = open_log(directory, SMALL)
    fill(log)
    log.truncate_to(50, NOW_MS)
    write(log, "after", timestamp=NOW_MS + 60)
    log.segments.delete_expired(NOW_MS + 60_000)
    log.flush(NOW_MS)
    log.close()
    assert values(read_all(log))[-1] == "after"
    check(log, directory)
