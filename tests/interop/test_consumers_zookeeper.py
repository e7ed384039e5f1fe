"""Tests `odradek consumers` with a real ZooKeeper: a group's offsets move to Kafka and back."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.brokers import Odradek
from tests.interop.processes import run
from tests.interop.zookeeper import ZooKeeper, znodes

pytestmark = [pytest.mark.zookeeper, pytest.mark.odradek_only]

SOON_S = 60


def command(broker: Odradek, *words: str) -> list[dict[str, object]]:
    """Returns the rows of a command."""
    where = ("--zookeeper", broker.properties["zookeeper.connect"], "-b", broker.bootstrap)
    ended = run([Odradek.program, "consumers", *words, *where])
    return [json.loads(line) for line in ended.stdout.decode().splitlines()]


def test_a_groups_offsets_go_to_kafka_and_back(tmp_path: Path) -> None:
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    zookeeper.start()
    connect = f"{zookeeper.address}/kafka"
    properties = {"zookeeper.connect": connect, "zookeeper.connection.timeout.ms": "60000"}
    broker = Odradek(tmp_path / "data", {**properties, "offsets.topic.num.partitions": "1"})
    broker.start()
    topic = NewTopic("t", num_partitions=2, replication_factor=1)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([topic])["t"].result(SOON_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in range(10):
        producer.produce("t", str(value).encode(), partition=value % 2)
    assert producer.flush(SOON_S) == 0
    with znodes(connect) as client:
        client.create("/consumers/g/offsets/t/0", b"3", makepath=True)
        client.create("/consumers/g/offsets/gone/0", b"9", makepath=True)
        consumer = b'{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1"}'
        client.create("/consumers/g/ids/c", consumer, makepath=True, ephemeral=True)
        client.create("/consumers/g/owners/t/0", b"c-0", makepath=True, ephemeral=True)

        first, second = [row for row in command(broker, "show", "g") if row["topic"] == "t"]
        assert first == {
            "topic": "t", "partition": 0, "offset": 3, "end": 5, "lag": 2, "owner": "c-0", "due": "c-0"
        }  # fmt: skip
        assert (second["owner"], second["due"], second["offset"]) == (None, "c-0", None)

        with pytest.raises(AssertionError, match="has consumers in ZooKeeper: c; stop them first"):
            command(broker, "migrate", "g", "--yes")
        client.delete("/consumers/g/ids/c")
        actions = [(row["topic"], row["action"]) for row in command(broker, "migrate", "g")]
        assert actions == [("gone", "no partition"), ("t", "copy")]
        for expected in ("copy", "same"):  # it can be repeated
            (row,) = [row for row in command(broker, "migrate", "g", "--yes") if row["topic"] == "t"]
            assert row["action"] == expected

        client.set("/consumers/g/offsets/t/0", b"1")
        (row,) = [row for row in command(broker, "migrate", "g", "--yes") if row["topic"] == "t"]
        assert row["action"] == "target is ahead"
        refused_while_it_consumes(broker, "g")
        command(broker, "migrate", "g", "--into", "zookeeper", "--yes")
        assert client.get("/consumers/g/offsets/t/0")[0] == b"3"
    broker.stop()
    broker.forget()
    zookeeper.forget()


def refused_while_it_consumes(broker: Odradek, group: str) -> None:
    """Checks that offsets of a group with current members, of either protocol, can't be changed."""
    for protocol in ("classic", "consumer"):
        settings = {"group.id": group, "group.protocol": protocol, "enable.auto.commit": False}
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings})
        consumer.subscribe(["t"])
        deadline = time.monotonic() + SOON_S
        while not consumer.assignment():
            assert time.monotonic() < deadline, f"nothing was assigned by the protocol {protocol}"
            consumer.poll(0.1)
        with pytest.raises(AssertionError, match="group g has members and is Stable; stop them first"):
            command(broker, "migrate", group, "--into", "zookeeper", "--yes")
        consumer.close()
