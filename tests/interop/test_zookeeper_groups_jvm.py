"""Tests groups of Kafka 0.8's consumers that coordinate through Apache ZooKeeper, with Odradek brokers."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from kazoo.client import KazooClient

from commands.zookeeper.znodes import read_group
from protocol.types import TopicPartition
from tests.interop.brokers import Odradek
from tests.interop.consumed import offset_of, partition_of, value_of
from tests.interop.old_consumers import DUAL, KAFKA, ZOOKEEPER, Consumed, OldConsumer, settled
from tests.interop.old_load import Numbers, consumed_by, until_consumed
from tests.interop.own_quorum import OdradekNode, OwnQuorum
from tests.interop.processes import run
from tests.interop.zookeeper import (
    SOON_S,
    Ensemble,
    ZooKeeper,
    facing,
    looked,
    old_tool,
    produce,
    started,
    until,
    znodes,
)

pytestmark = [pytest.mark.zookeeper, pytest.mark.odradek_only]

TOPICS = "kafka.admin.TopicCommand"


def create(connect: str, topic: str, partitions: int, replicas: int = 1) -> None:
    """Creates a topic by the old tool, and waits until all of its partitions have a leader."""
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


def shown(broker: Odradek | OdradekNode, connect: str, group: str, *words: str) -> list[dict[str, object]]:
    """Returns the rows of `odradek consumers show`."""
    where = ("--zookeeper", connect, "-b", broker.bootstrap, "-o", "json")
    printed = run([Odradek.program, "consumers", "show", group, *where, *words]).stdout.decode()
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_real_consumers_own_what_falls_to_them_by_our_rules(broker: Odradek, tmp_path: Path, strategy: str) -> None:
    connect, group = broker.properties["zookeeper.connect"], f"by-{strategy}"
    topics = {f"{strategy}-one": 7, f"{strategy}-two": 4}
    for topic, partitions in topics.items():
        create(connect, topic, partitions)
    consumers = [OldConsumer(tmp_path / name, connect, group, dict.fromkeys(topics, 2)) for name in "abc"]
    settings = {**ZOOKEEPER, "partition.assignment.strategy": strategy}
    with znodes(connect) as client:
        for number, consumer in enumerate(consumers, 1):
            consumer.start(settings)
            until(partial(settled, client, group, number, topics, strategy), [consumer])
        for one in read_group(client, group).members:
            data = client.get(f"/consumers/{group}/ids/{one.consumer_id}")[0]
            assert json.loads(data) == json.loads(one.registration(int(json.loads(data)["timestamp"])))
        rows = shown(broker, connect, group, "--strategy", strategy)
        assert len(rows) == sum(topics.values())
        assert all(row["owner"] == row["due"] for row in rows)
        consumers[0].kill9()
        until(lambda: settled(client, group, 2, topics, strategy), consumers)


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
                until(partial(settled, client, group, members, partitions), consumers)
            numbers.goes_on()
        written = numbers.finish()
        counts = until_consumed(written, consumers)
        twice = {record: count for record, count in counts.items() if count > 1}
        # Around a bounce: each has both consumers give up their partitions, with one record in hand.
        assert sum(twice.values()) - len(twice) <= 2 * len(consumers) * bounces, twice
        first, last = consumers
        assert first.stop() in (0, 143)
        # One that is stopped while it rebalances may wait for itself for ever.
        until(lambda: settled(client, group, 1, partitions), [last])
        assert last.stop() in (0, 143)
        assert read_group(client, group).owners == {}
    produce(broker, topic, range(10_000, 10_100))
    after = {record.value for record in modern(broker, group, topic, 100)}
    assert after == {str(value) for value in range(10_000, 10_100)}


def modern(broker: Odradek, group: str, topic: str, records: int) -> Iterator[Consumed]:
    """Returns the records that a current consumer reads from its group's offsets on."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "error"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    for message in consumer.consume(records, timeout=SOON_S):
        assert message.error() is None, message.error()
        yield Consumed(TopicPartition(topic, partition_of(message)), offset_of(message), value_of(message).decode())
    consumer.close()


class Site:
    """An ensemble, a controller, three brokers and a group of consumers over twelve partitions."""

    TOPIC, PARTITIONS, GROUP = "orders", 12, "billing"

    def __init__(self, folder: Path) -> None:
        self.ensemble = Ensemble(folder / "ensemble", "3.6.4")
        self.ensemble.start()
        self.connect = f"{self.ensemble.address}/kafka"
        self.quorum = OwnQuorum(folder)
        self.quorum.controller.start()
        properties = facing(self.connect, offsets__topic__replication__factor="3")
        self.brokers = [self.quorum.odradek(number, **properties) for number in (1, 2, 3)]
        for broker in self.brokers:
            broker.start()
        create(self.connect, self.TOPIC, self.PARTITIONS, replicas=3)
        self.consumers = [OldConsumer(folder / name, self.connect, self.GROUP, {self.TOPIC: 1}) for name in "abc"]
        self.numbers = Numbers(",".join(broker.bootstrap for broker in self.brokers), self.TOPIC, self.PARTITIONS)

    def look(self, client: KazooClient) -> bool:
        members = sum(consumer.is_running for consumer in self.consumers)
        return settled(client, self.GROUP, members, {self.TOPIC: self.PARTITIONS})

    def settle(self) -> None:
        """Waits until each running consumer owns its part, and no other process owns a partition."""
        until(lambda: looked(self.connect, self.look), [*self.consumers, *self.brokers])

    def registered(self) -> list[str]:
        return sorted(looked(self.connect, lambda client: client.get_children("/brokers/ids")) or [])

    def active(self) -> int | None:
        """Returns the id of the active broker; None if there is none."""
        data = looked(self.connect, lambda client: client.get("/controller")[0])
        return None if data is None else json.loads(data)["brokerid"]

    def freeze_active(self) -> None:
        """Stops the active broker until another broker is active, and then continues it."""
        until(self.active, self.brokers)
        number = self.active()
        (broker,) = [one for one in self.brokers if one.settings["node.id"] == str(number)]
        broker.signal(signal.SIGSTOP)
        until(lambda: self.active() not in (None, number), self.brokers)
        self.numbers.goes_on()
        broker.signal(signal.SIGCONT)
        until(lambda: self.registered() == ["1", "2", "3"], self.brokers)
        assert self.active() not in (None, number)

    def lose(self, broker: OdradekNode) -> None:
        """Kills a broker, lets clients continue without it, and restarts it."""
        broker.kill9()
        others = sorted(one.settings["node.id"] for one in self.brokers if one is not broker)
        until(lambda: self.registered() == others, self.brokers)
        self.numbers.goes_on()
        broker.start()
        until(lambda: self.registered() == ["1", "2", "3"], self.brokers)
        self.numbers.goes_on()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_group_reads_everything_while_brokers_are_killed_and_consumers_come_and_go(site: Site) -> None:
    first, second, third = site.consumers
    site.numbers.start()
    for consumer in site.consumers:
        consumer.start()
    site.settle()
    site.numbers.goes_on()

    site.freeze_active()
    site.lose(site.brokers[0])
    first.kill9()
    site.settle()
    coming_back = threading.Thread(target=first.start)
    coming_back.start()
    site.lose(site.brokers[1])
    coming_back.join()
    site.settle()
    assert second.stop() in (0, 143)
    site.settle()
    site.lose(site.brokers[2])
    second.start()
    leader = site.ensemble.leader()
    leader.kill9()
    site.numbers.goes_on()
    leader.start()
    third.kill9()
    third.start()
    site.settle()

    until_consumed(site.numbers.finish(), site.consumers)
    check_owners(site)
    for broker in site.brokers:
        assert broker.stop() == 0


def check_owners(site: Site) -> None:
    """Checks that each partition is read by its only owner, also according to the tools."""
    counts = consumed_by(site.consumers)
    last = Numbers(site.brokers[0].bootstrap, site.TOPIC, site.PARTITIONS)
    last.start()
    last.goes_on()
    written = last.finish()
    until(lambda: written <= consumed_by(site.consumers).keys(), site.consumers)
    assert all(count == 1 for record, count in (consumed_by(site.consumers) - counts).items() if record in written)

    rows = shown(site.brokers[0], site.connect, site.GROUP)
    assert len(rows) == site.PARTITIONS
    assert all(row["owner"] == row["due"] for row in rows)
    owners = {(row["topic"], row["partition"]): row["owner"] for row in rows}

    where = ("--zookeeper", site.connect, "--group", site.GROUP)
    until(lambda: all(row["lag"] == 0 for row in shown(site.brokers[0], site.connect, site.GROUP)))
    printed = old_tool("0.8.2.2", "kafka.tools.ConsumerOffsetChecker", *where, "--topic", site.TOPIC)
    lines = [line.split() for line in printed.splitlines() if line.startswith(f"{site.GROUP} ")]
    assert len(lines) == site.PARTITIONS
    for _, topic, partition, offset, end, lag, owner in lines:
        assert (offset, lag, owner) == (end, "0", owners[topic, int(partition)])
    # Before 0.10.2 the tool compares numbers with texts, and calls every rebalance a failure.
    verified = old_tool("0.10.2.2", "kafka.tools.VerifyConsumerRebalance", "--zookeeper.connect", *where[1:])
    assert "Rebalance operation successful" in verified
