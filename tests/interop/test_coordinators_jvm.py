"""Tests coordinators on an Apache Kafka broker and an Odradek broker, under Apache Kafka's controller.

Partitions, transactions, groups and share state are led by either, and moved while they are used.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from protocol.java_hash import java_hash
from tests.interop import copying
from tests.interop.brokers import Odradek
from tests.interop.clients.transactions import COMMITTED, UNCOMMITTED
from tests.interop.processes import LineClient
from tests.interop.quorum import ApacheNode, Quorum
from tests.interop.sharing import SHORT, Consumers, start_client
from tests.waiting import eventually

OWN, APACHE = 1, 2
SOON_S = 180
SESSION_MS = 9_000
INTERNAL_PARTITIONS = 4
EITHER = [[OWN, APACHE], [APACHE, OWN]] * (INTERNAL_PARTITIONS // 2)
"""Replicas by partition: while both brokers run, Odradek leads the even ones and Apache Kafka the odd ones."""
INTERNAL = {
    "__transaction_state": "transaction.state.log.num.partitions",
    "__consumer_offsets": "offsets.topic.num.partitions",
    "__share_group_state": "share.coordinator.state.topic.num.partitions",
}
COMPACTED = {"cleanup.policy": "compact", "min.insync.replicas": "1"}


class Cluster:
    """Both brokers, and their addresses for clients."""

    def __init__(self, folder: Path) -> None:
        self.quorum = Quorum(folder, session_ms=SESSION_MS)
        for option in INTERNAL.values():
            self.quorum.joining[option] = str(INTERNAL_PARTITIONS)
        self.quorum.joining.update(SHORT)
        self.own = self.quorum.odradek(OWN)
        self.apache, self._apache_address = self.quorum.apache(APACHE)
        for server in (self.quorum.controller, self.own, self.apache):
            server.patience_s = SOON_S

    def start(self) -> None:
        """Starts all three processes, and creates the coordinators' topics, with replicas on both brokers."""
        self.quorum.controller.start()
        self.apache.start()
        self.own.start()
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})
        self.create("__transaction_state", EITHER, COMPACTED)
        self.create("__consumer_offsets", EITHER, COMPACTED)
        self.create("__share_group_state", EITHER, {"min.insync.replicas": "1"})

    @property
    def bootstrap(self) -> str:
        return f"{self.own.bootstrap},{self._apache_address}"

    def create(self, topic: str, replicas: Sequence[list[int]], config: dict[str, str] | None = None) -> None:
        new = NewTopic(topic, len(replicas), replica_assignment=list(replicas), config=config or {})
        self.admin.create_topics([new])[topic].result(SOON_S)
        eventually(lambda: all(self.in_sync(topic, index) == {*of} for index, of in enumerate(replicas)), True)

    def in_sync(self, topic: str, index: int) -> set[int]:
        partitions = self.admin.list_topics(topic, SOON_S).topics[topic].partitions
        return set(partitions[index].isrs) if index in partitions else set()

    def whole(self, *topics: str) -> None:
        """Waits until both brokers are in sync again in all partitions."""
        for topic in (*INTERNAL, *topics):
            for index in range(len(self.admin.list_topics(topic, SOON_S).topics[topic].partitions)):
                eventually(lambda topic=topic, index=index: self.in_sync(topic, index), {OWN, APACHE})  # type: ignore[misc]

    def kill(self, broker: Odradek | ApacheNode) -> None:
        """Kills a broker, and starts it again."""
        broker.kill9()
        broker.start()

    def stop(self) -> None:
        with contextlib.ExitStack() as stack:  # each is stopped, whatever becomes of the others
            for server in (self.quorum.controller, self.apache, self.own):
                stack.callback(server.forget)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("coordinators"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def led_by(broker_id: int, prefix: str) -> str:
    """Returns a name that is coordinated on that broker while both run."""
    remainder = 0 if broker_id == OWN else 1
    names = (f"{prefix}-{number}" for number in range(100))
    return next(name for name in names if abs(java_hash(name)) % INTERNAL_PARTITIONS % 2 == remainder)


def written(cluster: Cluster, topic: str, name: str, group: str) -> None:
    """Writes transactions over both partitions of a topic, with offsets of a group; every second one aborts."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": name})
    producer.init_transactions(SOON_S)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    for number in range(10):
        producer.begin_transaction()
        for partition in range(2):
            producer.produce(topic, f"{name}:{number}", partition=partition)
        assert not producer.flush(SOON_S)  # an abort drops the records that are not sent yet
        offsets = [TopicPartition(topic, 0, number)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SOON_S)
        if number % 2:
            producer.abort_transaction(SOON_S)
        else:
            producer.commit_transaction(SOON_S)
    consumer.close()


def values(cluster: Cluster, topic: str, isolation: str, count: int) -> dict[int, list[str]]:
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "unused", "isolation.level": isolation}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(2)])
    consumed: dict[int, list[str]] = {0: [], 1: []}
    deadline = time.monotonic() + SOON_S
    while sum(map(len, consumed.values())) < count and time.monotonic() < deadline:
        for message in consumer.consume(100, timeout=0.5):
            if message.error() is None:
                consumed[message.partition() or 0].append((message.value() or b"").decode())
    consumer.close()
    return consumed


@pytest.mark.parametrize("coordinator", [OWN, APACHE])
def test_transactions_over_partitions_of_both_with_the_coordinator_at_either(
    cluster: Cluster, topic: str, coordinator: int
) -> None:
    cluster.create(topic, [[OWN], [APACHE]])
    name = led_by(coordinator, f"{topic}-id")
    committed = [f"{name}:{number}" for number in range(0, 10, 2)]
    for group_coordinator in (OWN, APACHE):
        group = led_by(group_coordinator, f"{topic}-readers")
        written(cluster, topic, name, group)
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "isolation.level": COMMITTED})
        (stored,) = consumer.committed([TopicPartition(topic, 0)], timeout=SOON_S)
        consumer.close()
        assert stored.offset == 8
    assert values(cluster, topic, COMMITTED, 20) == {0: committed * 2, 1: committed * 2}
    assert {len(of) for of in values(cluster, topic, UNCOMMITTED, 40).values()} == {20}


# What follows takes minutes.


def copied(cluster: Cluster, tmp_path: Path, name: str, *settings: str, kills: int = 0) -> None:
    """Runs a Java client's consume, transform, produce; the brokers are killed in turn."""
    topics = {"input": EITHER[:3], "output": [*reversed(EITHER[:3])]}
    for topic, replicas in topics.items():
        cluster.create(topic, replicas)
    count = 0
    copier = copying.Copier(cluster.bootstrap, name, f"{name}-group", "4.3.1", tmp_path / "copier.log", *settings)
    try:
        for number in range(max(kills, 1)):
            copying.fill(cluster.bootstrap, 600, count)
            count += 600
            time.sleep(2)  # it is in the middle of something
            if kills:
                cluster.kill((cluster.own, cluster.apache)[number % 2])
                cluster.whole(*topics)
        consumed = copying.read(cluster.bootstrap, COMMITTED, count, timeout_s=300)
    finally:
        copier.kill9()
        for deleted in cluster.admin.delete_topics([*topics]).values():
            deleted.result(SOON_S)
    assert not copying.repeated(consumed)
    assert {index: sorted(numbers) for index, numbers in consumed.items()} == {
        index: list(range(index, count, 3)) for index in range(3)
    }


@pytest.mark.cluster
@pytest.mark.timeout(600)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("coordinator", [OWN, APACHE])
def test_a_copy_is_exact(cluster: Cluster, tmp_path: Path, coordinator: int, protocol: str) -> None:
    copied(cluster, tmp_path, led_by(coordinator, f"copier-{protocol}"), f"group.protocol={protocol}")


@pytest.mark.cluster
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_copy_is_exact_though_coordinators_are_killed(cluster: Cluster, tmp_path: Path, protocol: str) -> None:
    copied(cluster, tmp_path, f"killed-{protocol}", f"group.protocol={protocol}", kills=6)


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineClient]:
    client = start_client(tmp_path_factory.mktemp("share") / "client.log")
    yield client
    client.close()


@pytest.mark.cluster
@pytest.mark.timeout(300)
@pytest.mark.parametrize("leader", [OWN, APACHE])
def test_share_partitions_have_their_state_at_either(
    cluster: Cluster, members: LineClient, topic: str, leader: int
) -> None:
    share = Consumers(members)
    share.bootstrap = cluster.bootstrap
    cluster.create(topic, [[leader]] * 4)  # the state of some partitions is here, that of others there
    share.configure("groups", topic, share_auto_offset_reset="earliest", share_record_lock_duration_ms="30000")
    share.produce(topic, 40)
    share.open("a", topic)
    first = share.poll("a", 40, timeout_s=60)
    assert len({(record.partition, record.offset) for record in first}) == 40
    share.commit("a")
    share.close("a")
    share.produce(topic, 10)
    share.open("b", topic)
    again = share.poll("b", 10, timeout_s=60)
    share.close("b")
    assert not {(record.partition, record.offset) for record in first} & {
        (record.partition, record.offset) for record in again
    }
    assert len(again) == 10


@pytest.mark.cluster
@pytest.mark.timeout(300)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_where_its_coordinator_is_killed(cluster: Cluster, topic: str, protocol: str) -> None:
    cluster.create(topic, EITHER[:2])
    group = led_by(OWN, f"{topic}-group")
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "group.protocol": protocol,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    consumed: list[str] = []
    try:
        for number, broker in enumerate((cluster.own, cluster.apache, None)):
            producer.produce(topic, f"value-{number}", partition=number % 2)
            assert not producer.flush(SOON_S)
            deadline = time.monotonic() + SOON_S
            while len(consumed) <= number and time.monotonic() < deadline:
                message = consumer.poll(0.5)
                if message is not None and message.error() is None:
                    consumed.append((message.value() or b"").decode())
                    commit(consumer)
            if broker is not None:
                cluster.kill(broker)
                cluster.whole(topic)
        assert consumed == ["value-0", "value-1", "value-2"]
    finally:
        consumer.close()


def commit(consumer: Consumer) -> None:
    """Commits, while the coordinator moves."""
    deadline = time.monotonic() + SOON_S
    while True:
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
        else:
            return
