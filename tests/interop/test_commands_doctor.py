"""Tests `odradek doctor` and `odradek cluster quorum` with Odradek and Apache Kafka."""

from __future__ import annotations

import pytest

from tests.interop.brokers import Broker
from tests.interop.commanding import Feed, Run, call
from tests.interop.conftest import Start

pytestmark = pytest.mark.odradek_only  # it starts both

STAMP = ("--timestamp", "1767225600000")


def test_a_group_that_nobody_reads_for_is_a_finding(
    run: Run, feed: Feed, command_brokers: list[Broker], capsys: pytest.CaptureFixture[str], topic: str
) -> None:
    run("topic", "create", topic, "-p", "2")
    feed(b"a\nb\nc\n")
    run("produce", topic, "-p", "1", *STAMP)
    run("group", "reset", topic, "--to", "start", "--topic", topic, "--yes")
    for broker in command_brokers:
        outcome = call(capsys, broker.bootstrap, ("doctor", "--watch", "0s", "--lag", "2", "--free", "0"))
        assert outcome.status == 1
        assert [row for row in outcome.rows if row["subject"] == f"group {topic}"] == [
            {
                "severity": "warning",
                "subject": f"group {topic}",
                "sentence": f"group {topic} has 3 records left, 3 of them in {topic}-1, and it has no members.",
                "command": f"odradek group describe {topic}",
            }
        ]
        assert {row["severity"] for row in outcome.rows} == {"warning"}


def test_the_controllers_are_shown(run: Run) -> None:
    (described,) = run("cluster", "quorum", varying={"epoch", "high_watermark", "replicas"}).rows
    assert described["leader"] == 1


def test_a_cluster_that_is_well_ends_with_0_and_one_with_a_full_disk_with_1(
    start_odradek: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = start_odradek()
    quick = ("doctor", "--watch", "0s", "--free", "0", "-o", "table")
    outcome = call(capsys, broker.bootstrap, quick)
    assert (outcome.status, outcome.out) == (0, "No faults: 1 brokers, 0 partitions, 0 groups.\n")
    full = call(capsys, broker.bootstrap, ("doctor", "--watch", "0s", "--free", "100.1"))
    assert full.status == 1
    assert [row["severity"] for row in full.rows] == ["warning"]
    assert call(capsys, broker.bootstrap, ("doctor", "--watch", "never")).status == 2
