"""Groups of consumers of Kafka 0.8 that meet in Apache ZooKeeper, before brokers of Odradek's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from commands.consumer_znodes import read_group
from protocol.types import TopicPartition
from tests.interop.brokers import Odradek
from tests.interop.old_consumers import DUAL, KAFKA, ZOOKEEPER, Consumed, OldConsumer, settled
from tests.interop.old_load import Numbers, until_consumed
from tests.interop.zookeeper import SOON_S, ZooKeeper, old_tool, produce, started, until, znodes

pytestmark = [pytest.mark.zookeeper, pytest.mark.odradek_only]

TOPICS = "kafka.admin.TopicCommand"


def create(connect: str, topic: str, partitions: int, replicas: int = 1) -> None:
    """Makes a topic by the tool of the age, and waits until all of its partitions are led."""
    count = ("--partitions", str(partitions), "--replication-factor", str(replicas))
    old_tool("0.8.2.2", TOPICS, "--zookeeper", connect, "--create", "--topic", topic, *count)
    paths = [f"/brokers/topics/{topic}/partitions/{index}/state" for index in range(partitions)]
    with znodes(connect) as client:
        until(lambda: all(client.exists(path) for path in paths))


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper") / "zookeeper")
    server.start()
    yield server
    server.forget()


@pytest.fixture(scope="module")
def broker(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odradek]:
    broker = started(tmp_path_factory.mktemp("broker") / "data", f"{zookeeper.address}/kafka")
    yield broker
    assert broker.stop() == 0
    broker.forget()


def test_offsets_go_to_kafka_and_back_step_by_step_under_load(broker: Odradek, tmp_path: Path) -> None:
    connect, group, topic, partitions = broker.properties["zookeeper.connect"], "moving", "moved", {"moved": 4}
    create(connect, topic, partitions[topic])
    consumers = [OldConsumer(tmp_path / name, connect, group, {topic: 1}) for name in "ab"]
    numbers = Numbers(broker.bootstrap, topic, partitions[topic])
    numbers.start()
    with znodes(connect) as client:
        bounces = 0
        for settings in (ZOOKEEPER, DUAL, KAFKA, DUAL, ZOOKEEPER, DUAL, KAFKA):
            for number, consumer in enumerate(consumers, 1):
                assert consumer.stop() in (0, 143)
                consumer.start(settings)
                bounces += 1
                members = len(consumers) if bounces > len(consumers) else number
                until(lambda members=members: settled(client, group, members, partitions), consumers)
            numbers.goes_on()
        written = numbers.finish()
        counts = until_consumed(written, consumers)
        twice = {record: count for record, count in counts.items() if count > 1}
        # Around a bounce: each has both consumers give up their partitions, with one record in hand.
        assert sum(twice.values()) - len(twice) <= 2 * len(consumers) * bounces, twice
        for consumer in consumers:
            assert consumer.stop() in (0, 143)
        assert read_group(client, group).owners == {}
    produce(broker, topic, range(10_000, 10_100))
    after = {record.value for record in modern(broker, group, topic, 100)}
    assert after == {str(value) for value in range(10_000, 10_100)}


def modern(broker: Odradek, group: str, topic: str, records: int) -> Iterator[Consumed]:
    """The records that a consumer of today reads, which goes on where its group was."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "error"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    for message in consumer.consume(records, timeout=SOON_S):
        assert message.error() is None, message.error()
        yield Consumed(TopicPartition(topic, message.partition()), message.offset(), message.value().decode())
    consumer.close()
