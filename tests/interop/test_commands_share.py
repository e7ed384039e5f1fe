"""Compares `odradek share` on Odradek and Apache Kafka: the same words give the same output."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer

from tests.interop.brokers import Broker
from tests.interop.commanding import Feed, Run

pytestmark = [pytest.mark.odradek_only, pytest.mark.commands]  # it starts both

STAMP = ("--timestamp", "1767225600000")


@pytest.fixture
def jobs(run: Run, feed: Feed, topic: str) -> str:
    """Creates a topic with four records, and a group of its name that begins at the first."""
    run("topic", "create", topic, "-p", "1")
    run("config", "set", "group", topic, "share.auto.offset.reset=earliest")
    feed(b"1\n2\n3\n4\n")
    run("produce", topic, *STAMP)
    return topic


def test_records_are_delivered_until_they_are_acknowledged(run: Run, jobs: str) -> None:
    consume = ("share", "consume", jobs, jobs)
    first = run(*consume, "-n", "2").rows
    assert [(row["payload"], row["delivery_count"]) for row in first] == [("1", 1), ("2", 1)]
    assert [row["payload"] for row in run(*consume, "-n", "1", "--release").rows] == ["3"]
    assert [row["payload"] for row in run(*consume, "-n", "1", "--reject").rows] == ["3"]
    assert run("share", "describe", jobs).rows[0]["lag"] == 1
    assert [row["offset"] for row in run(*consume, "--timeout", "500ms").rows] == [3]
    assert run(*consume, "--timeout", "500ms").rows == []


def test_a_group_is_listed_described_reset_and_deleted(run: Run, jobs: str, tmp_path: Path) -> None:
    run("share", "consume", jobs, jobs, "-n", "4")
    (listing,) = [row for row in run("share", "list", "--state", "empty").rows if row["group"] == jobs]
    assert listing["type"] == "share"
    (described,) = run("share", "describe", jobs).rows
    assert (described["members"], described["lag"]) == (0, 0)
    # The start that is stored follows acknowledgements by and by.
    (planned,) = run("share", "reset", jobs, "--to", "start", varying={"committed"}).rows
    assert (planned["new"], planned["result"]) == (0, "would be set")
    run("share", "reset", jobs, "--to", "start", "--yes", varying={"committed"})
    assert run("share", "describe", jobs).rows[0]["lag"] == 4
    run("share", "reset", jobs, "--shift", "1", "--yes")
    assert [row["offset"] for row in run("share", "consume", jobs, jobs, "-n", "1").rows] == [1]
    plan = tmp_path / "plan.csv"  # as kafka-consumer-groups exports it
    plan.write_text(f'"{jobs}",0,3\n')
    run("share", "reset", jobs, "--to-file", str(plan), "--yes", varying={"committed"})
    assert [row["offset"] for row in run("share", "consume", jobs, jobs, "-n", "1").rows] == [3]
    run("share", "forget", jobs, jobs, "--yes")
    assert run("share", "describe", jobs).rows[0]["partitions"] == []
    run("share", "delete", jobs, "--yes")
    run("share", "delete", jobs, "--yes", status=1)
    run("share", "describe", jobs, status=1)


def test_records_behind_the_start_are_shown_with_their_state(
    run: Run, command_brokers: list[Broker], jobs: str
) -> None:
    for broker in command_brokers:
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": jobs, "share.acknowledgement.mode": "explicit"}
        consumer = ShareConsumer(settings)
        consumer.subscribe([jobs])
        deadline = time.monotonic() + 60
        messages: list[object] = []
        while len(messages) < 4:
            for message in consumer.poll(0.3):
                messages.append(message)
                first = message.offset() == 0
                consumer.acknowledge(message, AcknowledgeType.RELEASE if first else AcknowledgeType.ACCEPT)
            assert time.monotonic() < deadline
        assert all(error is None for error in consumer.commit_sync(10).values())
        consumer.close()
    ranges = [(row["first"], row["last"], row["state"]) for row in run("share", "state", jobs).rows]
    assert ranges == [(0, 0, "available"), (1, 3, "acknowledged")]


def test_the_records_that_a_member_has_are_shown_by_the_leader(command_brokers: list[Broker], jobs: str) -> None:
    """Apache Kafka has no API for them, so the output says that the state is the stored one."""
    told = []
    for broker in command_brokers:
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": jobs, "share.acknowledgement.mode": "explicit"}
        consumer = ShareConsumer(settings)
        consumer.subscribe([jobs])
        deadline = time.monotonic() + 60
        while not consumer.poll(0.3):
            assert time.monotonic() < deadline
        words = [sys.executable, "-m", "odradek", "share", "records", jobs, "-b", broker.bootstrap, "-o", "json"]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        told.append(([(row["first"], row["last"], row["state"], row["deliveries"]) for row in rows], done.stderr))
        if broker is command_brokers[0]:
            assert rows[0]["member"]
            assert rows[0]["until"]
        consumer.close()
    assert told[0] == ([(0, 3, "acquired", 1)], "")
    rows, note = told[1]
    assert rows == [(0, 3, "new", 0)]
    assert "not Odradek's" in note


def test_other_groups_and_missing_topics_are_refused(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-p", "1")
    run("group", "reset", topic, "--to", "start", "--topic", topic, "--yes")
    assert "classic group" in run("share", "describe", topic, status=1).out
    run("share", "consume", topic, f"{topic}-none", "-n", "1", status=1)
    run("share", "consume", topic, topic, "-n", "0", status=2)
    run("share", "consume", topic, topic, "--timeout", "soon", status=2)
