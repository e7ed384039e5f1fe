"""Tests applications of Apache Kafka Streams whose groups the broker coordinates (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.brokers import Broker
from tests.interop.clients.confluent import Confluent
from tests.interop.commanding import call
from tests.interop.word_counts import APPLICATION, READY_S, TOPICS, WordCounts, start_streams, streams_groups
from tests.waiting import wait_until

CLIENT = Confluent()


@pytest.fixture
def properties() -> dict[str, str]:
    return {
        "group.streams.initial.rebalance.delay.ms": "500",
        "group.streams.min.heartbeat.interval.ms": "500",
        "group.streams.heartbeat.interval.ms": "500",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


@pytest.fixture
def application(broker: Broker, tmp_path: Path) -> Iterator[WordCounts]:
    for topic in TOPICS:
        CLIENT.create(broker.bootstrap, topic, partitions=2)
    streams = start_streams(tmp_path)
    yield WordCounts(broker.bootstrap, streams, tmp_path / "state")
    streams.close()


def test_counts_are_exact_over_rebalances_and_a_restart_of_the_broker(application: WordCounts, broker: Broker) -> None:
    application.open("one")
    application.write(50)
    application.wait_for("one")
    application.wait_for_counts()
    application.open("two")
    application.wait_for("one", "two")
    application.write(50)
    application.wait_for_counts()
    broker.restart()
    application.write(50)
    application.wait_for_counts()
    application.wait_for("one", "two")
    application.close("one")
    application.wait_for("two")
    application.write(50)
    application.wait_for_counts()


def test_the_tools_show_and_delete_the_group(
    application: WordCounts, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    application.open("one")
    application.write(10)
    application.wait_for("one")
    application.wait_for_counts()
    assert APPLICATION in streams_groups(broker.bootstrap, "--list").split()
    state = streams_groups(broker.bootstrap, "--describe", "--group", APPLICATION, "--state", "--verbose")
    assert "Stable" in state
    assert "ACTIVE" in streams_groups(broker.bootstrap, "--describe", "--group", APPLICATION, "--members", "--verbose")
    offsets = streams_groups(broker.bootstrap, "--describe", "--group", APPLICATION)
    assert f"{APPLICATION}-by-value-repartition" in offsets
    (row,) = [row for row in call(capsys, broker.bootstrap, ("group", "list")).rows if row["group"] == APPLICATION]
    assert (row["type"], row["state"], row["protocol"]) == ("streams", "Stable", "streams")
    (shown,) = call(capsys, broker.bootstrap, ("group", "describe", APPLICATION)).rows
    assert (shown["type"], shown["members"], shown["lag"]) == ("streams", 1, 0)
    partitions = shown["partitions"]
    assert isinstance(partitions, list)
    assert {(place["topic"], place["partition"]) for place in partitions} == {
        (topic, partition) for topic in ("in", f"{APPLICATION}-by-value-repartition") for partition in (0, 1)
    }
    application.close("one")
    wait_until(lambda: "Empty" in streams_groups(broker.bootstrap, "--list", "--state"), within_s=READY_S)
    assert "successful" in streams_groups(broker.bootstrap, "--delete", "--group", APPLICATION)
    assert APPLICATION not in streams_groups(broker.bootstrap, "--list").split()
