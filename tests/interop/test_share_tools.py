"""Tests Apache Kafka's tools for share groups: all of kafka-share-groups, and the three tools that consume."""

from __future__ import annotations

import json
import re

import pytest

from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.processes import run
from tests.interop.sharing import SHORT, Consumers, offsets, share_groups

FUTURE = "2099-01-01T00:00:00.000"


@pytest.fixture
def properties() -> dict[str, str]:
    return {**SHORT, "group.share.record.lock.duration.ms": "30000"}


def row(*words: str) -> str:
    return r"^" + r" +".join(words) + r" *$"


def error_of(broker: Broker, *arguments: str) -> str:
    """Returns the error of a kafka-share-groups command that fails, or partly fails."""
    command = jvm.command_of("kafka-share-groups", "--bootstrap-server", broker.bootstrap, *arguments)
    done = run(command, check=False)
    return done.stdout.decode() + done.stderr.decode()


def test_groups_are_listed_and_described(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic, 2)
    consumers.produce(topic, 10, "batch.size=1")
    consumers.open("a", topic, "client.id=reader")
    consumers.poll("a", 10)
    consumers.poll("a", timeout_s=0.5)
    assert share_groups(broker, "--list").split() == [topic]
    assert re.search(row(topic, "Stable"), share_groups(broker, "--list", "--state"), re.MULTILINE)
    assert topic in share_groups(broker, "--list", "--state", "Stable")
    assert topic not in share_groups(broker, "--list", "--state", "Empty")
    members = share_groups(broker, "--describe", "--group", topic, "--members", "--verbose")
    assert re.search(row(topic, r"\S+", r"\S+", "reader", "2", r"\d+", f"{topic}:0,1"), members, re.MULTILINE), members
    state = share_groups(broker, "--describe", "--group", topic, "--state", "--verbose")
    assert re.search(row(topic, r"\S+ +\(1\)", "Stable", r"\d+", r"\d+", "1"), state, re.MULTILINE), state
    output = share_groups(broker, "--describe", "--all-groups", "--offsets", "--verbose")
    for index in (0, 1):
        assert re.search(row(topic, topic, str(index), r"\d+", r"\d+", "0"), output, re.MULTILINE), output
    assert "not EMPTY" in error_of(broker, "--delete", "--group", topic)
    reset = ("--reset-offsets", "--group", topic, "--to-earliest", "--execute", "--all-topics")
    assert re.search("not empty", error_of(broker, *reset), re.IGNORECASE)
    consumers.close("a")


def test_offsets_are_reset_and_deleted(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 10)
    consumers.open("a", topic)
    consumers.poll("a", 10)
    consumers.poll("a", timeout_s=0.5)
    consumers.close("a")

    def reset(*arguments: str) -> str:
        return share_groups(broker, "--reset-offsets", "--group", topic, *arguments)

    def lag() -> int:
        output = share_groups(broker, "--describe", "--group", topic)
        match = re.search(row(topic, topic, "0", r"(\d+)", r"(\d+)"), output, re.MULTILINE)
        assert match, output
        return int(match[2])

    planned = reset("--topic", topic, "--to-earliest", "--dry-run")
    assert re.search(row(topic, topic, "0", "0"), planned, re.MULTILINE), planned
    assert lag() == 0
    reset("--topic", f"{topic}:0", "--to-earliest", "--execute")
    assert lag() == 10
    consumers.open("a", topic)
    assert offsets(consumers.poll("a", 10)) == list(range(10))
    consumers.close("a")
    reset("--all-topics", "--to-datetime", "2000-01-01T00:00:00.000", "--execute")
    assert lag() == 10
    reset("--all-topics", "--to-datetime", FUTURE, "--execute")
    assert lag() == 0
    reset("--all-topics", "--to-earliest", "--execute")
    reset("--all-topics", "--to-latest", "--execute")
    assert lag() == 0
    share_groups(broker, "--delete-offsets", "--group", topic, "--topic", topic)
    assert "has no offset information" in share_groups(broker, "--describe", "--group", topic)
    assert "no offset information to delete" in error_of(broker, "--delete-offsets", "--group", topic, "--topic", topic)
    assert "was successful" in share_groups(broker, "--delete", "--group", topic)
    assert topic not in share_groups(broker, "--list")
    assert "not found" in error_of(broker, "--describe", "--group", topic)


@pytest.mark.parametrize(("option", "again"), [("", []), ("--release", [1, 2, 3]), ("--reject", [])])
def test_the_console_consumer_accepts_releases_and_rejects(
    consumers: Consumers, broker: Broker, topic: str, option: str, again: list[int]
) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 3)
    printed = jvm.tool(
        "kafka-console-share-consumer", "--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", topic,
        "--max-messages", "3", "--formatter-property", "print.offset=true", "--formatter-property",
        "print.delivery=true", *filter(None, [option]),
    )  # fmt: skip
    for number in range(3):
        assert re.search(rf"Offset:{number}\s+Delivery:1\s+value-{number}", printed), printed
    consumers.open("a", topic)
    records = consumers.poll("a", 3, timeout_s=10 if again else 1.5)
    assert [(record.offset, record.delivery) for record in records] == [(number, 2) for number in range(len(again))]
    consumers.close("a")


@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
def test_the_verifiable_consumer_acknowledges_what_it_has_had(
    consumers: Consumers, broker: Broker, topic: str, mode: str
) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 100, "batch.size=1")
    printed = jvm.tool(
        "kafka-verifiable-share-consumer", "--bootstrap-server", broker.bootstrap, "--topic", topic, "--group-id",
        topic, "--max-messages", "100", "--acknowledgement-mode", mode, "--offset-reset-strategy", "earliest",
    )  # fmt: skip
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert events[0]["name"] == "startup_complete"
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 100
    acknowledged = [event for event in events if event["name"] == "offsets_acknowledged"]
    assert acknowledged
    assert all(event["success"] for event in acknowledged)
    assert events[-1]["name"] == "shutdown_complete"


def test_the_performance_tool_reads_by_several_consumers(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 2000)
    printed = jvm.tool(
        "kafka-share-consumer-perf-test", "--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", topic,
        "--num-records", "2000", "--threads", "3", "--show-consumer-stats",
    )  # fmt: skip
    assert re.search(r"^[^\n]*, 2000, [\d.]+, ", printed, re.MULTILINE) or "2000" in printed, printed
