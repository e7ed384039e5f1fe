"""Tests an Odradek broker that follows leaders on Apache Kafka, whose controller adds it to the ISR: the logs are
equal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.interop.brokers import Odradek
from tests.interop.jvm import tool
from tests.interop.quorum import CONTROLLER_ID, Quorum
from tests.waiting import eventually

FOLLOWER = 1
SOON_S = 90
SESSION_MS = 12_000
"""A session timeout for a busy machine: a leader that is late would be fenced."""
VALUE = b"x" * 700


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """Yields Apache Kafka, controller and broker in one process."""
    quorum = Quorum(tmp_path_factory.mktemp("following"), is_broker=True, session_ms=SESSION_MS)
    quorum.controller.start()
    yield quorum
    quorum.controller.stop()
    quorum.controller.forget()


@pytest.fixture(scope="module")
def follower(quorum: Quorum) -> Iterator[Odradek]:
    broker = quorum.odradek(FOLLOWER)
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


def create(quorum: Quorum, topic: str, partitions: int = 1, *configs: str) -> None:
    """Creates a topic that Apache Kafka leads, with a replica on the follower."""
    assignment = ",".join([f"{CONTROLLER_ID}:{FOLLOWER}"] * partitions)
    words = [word for config in configs for word in ("--config", config)]
    topics = ("kafka-topics", "--bootstrap-server", quorum.bootstrap)
    tool(*topics, "--create", "--topic", topic, "--replica-assignment", assignment, *words)


def described(quorum: Quorum, topic: str) -> list[tuple[str, str, set[str]]]:
    """Returns (partition, leader, ISR) of each partition."""
    text = tool("kafka-topics", "--bootstrap-server", quorum.bootstrap, "--describe", "--topic", topic)
    rows = re.findall(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: \S+\s+Isr: (\S+)", text)
    return [(partition, leader, set(isr.split(","))) for partition, leader, isr in rows]


def both_in_sync(quorum: Quorum, topic: str, partitions: int = 1) -> None:
    isr = {str(CONTROLLER_ID), str(FOLLOWER)}
    eventually(lambda: described(quorum, topic), [(str(index), str(CONTROLLER_ID), isr) for index in range(partitions)])


def log_bytes(data: Path, topic: str, partition: int) -> bytes:
    """Returns all batches of a replica, oldest first."""
    return b"".join(segment.read_bytes() for segment in sorted((data / f"{topic}-{partition}").glob("*.log")))


def alike(quorum: Quorum, follower: Odradek, topic: str, partitions: int = 1) -> None:
    """Waits until the replicas are equal byte for byte, after all writes."""

    def replicas(data: Path) -> list[bytes]:
        return [log_bytes(data, topic, partition) for partition in range(partitions)]

    assert all(replicas(quorum.controller.data))
    eventually(lambda: replicas(follower.data) == replicas(quorum.controller.data), True)


class Acknowledged:
    """A producer with acks=all, and the number of its acknowledged records."""

    def __init__(self, bootstrap: str, topic: str, partitions: int = 1, **settings: str) -> None:
        self.topic = topic
        self.count = 0
        self._partitions = partitions
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 2, **settings})

    def send(self, records: int) -> None:
        for number in range(records):
            while True:
                try:
                    self._producer.produce(
                        self.topic, VALUE, str(number), partition=number % self._partitions, on_delivery=self._written
                    )
                    break
                except BufferError:
                    self._producer.poll(0.05)
            self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(SOON_S) == 0

    def _written(self, error: object, _: object) -> None:
        assert error is None, error
        self.count += 1


def test_it_joins_the_isr_and_has_the_same_bytes(quorum: Quorum, follower: Odradek, topic: str) -> None:
    create(quorum, topic, 3, "min.insync.replicas=2")
    both_in_sync(quorum, topic, 3)
    producer = Acknowledged(quorum.bootstrap, topic, 3, **{"compression.type": "lz4"})
    producer.send(20_000)
    producer.flush()
    assert producer.count == 20_000
    alike(quorum, follower, topic, 3)
    both_in_sync(quorum, topic, 3)


def test_it_catches_up_with_what_was_there_before(quorum: Quorum, follower: Odradek, topic: str) -> None:
    assert follower.stop() == 0
    create_on_the_leader_alone = ("--create", "--topic", topic, "--replica-assignment", f"{CONTROLLER_ID}:{FOLLOWER}")
    with_small_segments = ("--config", "segment.bytes=1048576")
    tool("kafka-topics", "--bootstrap-server", quorum.bootstrap, *create_on_the_leader_alone, *with_small_segments)
    producer = Acknowledged(quorum.bootstrap, topic)
    producer.send(10_000)
    producer.flush()
    follower.start()
    both_in_sync(quorum, topic)
    alike(quorum, follower, topic)


def test_transactions_and_their_markers_are_replicated(quorum: Quorum, follower: Odradek, topic: str) -> None:
    create(quorum, topic)
    coordinated_by_the_leader = ("--topic", "__transaction_state", "--replica-assignment", str(CONTROLLER_ID))
    compacted = ("--config", "cleanup.policy=compact")
    tool("kafka-topics", "--bootstrap-server", quorum.bootstrap, "--create", *coordinated_by_the_leader, *compacted)
    both_in_sync(quorum, topic)
    producer = Producer({"bootstrap.servers": quorum.bootstrap, "transactional.id": topic})
    producer.init_transactions(SOON_S)
    for number in range(20):
        producer.begin_transaction()
        producer.produce(topic, str(number).encode())
        producer.flush(SOON_S)
        (producer.commit_transaction if number % 3 else producer.abort_transaction)(SOON_S)
    alike(quorum, follower, topic)
    index = f"{topic}-0/{0:020d}.txnindex"
    eventually(lambda: (follower.data / index).read_bytes() == (quorum.controller.data / index).read_bytes(), True)


@pytest.mark.cluster
def test_it_comes_back_after_a_kill_under_load(quorum: Quorum, follower: Odradek, topic: str) -> None:
    create(quorum, topic)
    both_in_sync(quorum, topic)
    producer = Acknowledged(quorum.bootstrap, topic)
    for _ in range(2):
        producer.send(3_000)
        follower.kill9()
        producer.send(3_000)
        follower.start()
    producer.flush()
    assert producer.count == 12_000
    both_in_sync(quorum, topic)
    alike(quorum, follower, topic)


def test_records_that_are_deleted_go_from_the_follower_as_well(quorum: Quorum, follower: Odradek, topic: str) -> None:
    create(quorum, topic)
    both_in_sync(quorum, topic)
    producer = Acknowledged(quorum.bootstrap, topic)
    producer.send(1_000)
    producer.flush()
    offsets = quorum.folder / "offsets.json"
    offsets.write_text(f'{{"version": 1, "partitions": [{{"topic": "{topic}", "partition": 0, "offset": 600}}]}}')
    server = ("--bootstrap-server", quorum.bootstrap, "--offset-json-file", str(offsets))
    deleted = tool("kafka-delete-records", *server)
    assert re.search(r"low_watermark: 600", deleted), deleted
    assert follower.stop() == 0
    checkpoint = (follower.data / "log-start-offset-checkpoint").read_text()
    assert f"{topic} 0 600" in checkpoint
    follower.start()
    both_in_sync(quorum, topic)


@pytest.mark.cluster
def test_a_leader_epoch_that_began_while_it_was_away(quorum: Quorum, follower: Odradek, topic: str) -> None:
    create(quorum, topic)
    both_in_sync(quorum, topic)
    producer = Acknowledged(quorum.bootstrap, topic)
    producer.send(1_000)
    producer.flush()
    follower.kill9()
    isr = {str(CONTROLLER_ID)}
    eventually(lambda: described(quorum, topic), [("0", str(CONTROLLER_ID), isr)])
    quorum.controller.restart()
    eventually(lambda: described(quorum, topic), [("0", str(CONTROLLER_ID), isr)])
    producer = Acknowledged(quorum.bootstrap, topic)
    producer.send(1_000)
    producer.flush()
    follower.start()
    both_in_sync(quorum, topic)
    alike(quorum, follower, topic)
    epochs = f"{topic}-0/leader-epoch-checkpoint"
    assert follower.stop() == 0
    assert len((follower.data / epochs).read_text().splitlines()) >= 4, "two epochs, behind version and count"
    follower.start()


def test_a_deleted_topic_is_fetched_no_more(quorum: Quorum, follower: Odradek, topic: str) -> None:
    create(quorum, topic)
    both_in_sync(quorum, topic)
    tool("kafka-topics", "--bootstrap-server", quorum.bootstrap, "--delete", "--topic", topic)
    eventually(lambda: (follower.data / f"{topic}-0").exists(), False)
    create(quorum, topic)
    both_in_sync(quorum, topic)
    producer = Acknowledged(quorum.bootstrap, topic)
    producer.send(100)
    producer.flush()
    alike(quorum, follower, topic)
