"""Tests `odradek cluster` with stock clients: processes die under load, and no acknowledged record is lost."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.consumed import offset_of, value_of
from tests.interop.load import RECONNECT, Writer
from tests.interop.local import SOON_S, LocalCluster
from tests.interop.processes import run
from tests.waiting import eventually, wait_until

PARTITIONS = 3
NAMES = ("controller", "broker-1", "broker-2", "broker-3")
QUICK = {
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "min.insync.replicas": "2",
    "log.cleaner.dedupe.buffer.size": "2097152",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path / "cluster", QUICK)
    cluster.start()
    yield cluster
    assert cluster.stop() == 0
    cluster.forget()


@pytest.fixture
def two_brokers(tmp_path: Path) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path / "cluster", QUICK, brokers=2)
    cluster.start()
    yield cluster
    cluster.forget()


def make_topic(cluster: LocalCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(SOON_S)


def wait_for_replicas(cluster: LocalCluster, topic: str) -> None:
    """Returns once all replicas of the topic are in sync."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **RECONNECT})

    def in_sync() -> dict[int, list[int]]:
        partitions = admin.list_topics(topic, timeout=SOON_S).topics[topic].partitions
        return {partition: sorted(state.isrs) for partition, state in partitions.items()}

    eventually(in_sync, {partition: [1, 2, 3] for partition in range(PARTITIONS)})


def write(bootstrap: str, topic: str, numbers: Sequence[int]) -> None:
    """Writes the numbers to the topic's first partition, which may have a single replica."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, **RECONNECT})
    for number in numbers:
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(SOON_S) == 0


def watermarks(bootstrap: str, partition: TopicPartition, deadline: float) -> tuple[int, int]:
    """Returns the partition's first and next offset, once it has a leader. A librdkafka client that has seen the
    partition without a leader uses its cache for minutes, so each attempt needs a new client."""
    while True:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", **RECONNECT})
        try:
            low, high = consumer.get_watermark_offsets(partition, timeout=5)
            return low, high
        except KafkaException:
            assert time.monotonic() < deadline, f"{partition} has no leader"
            time.sleep(0.1)  # a client is not told when one is elected
        finally:
            consumer.close()


def stored(bootstrap: str, topic: str, partition: int) -> dict[int, int]:
    """Returns the numbers in a partition, by offset."""
    deadline = time.monotonic() + SOON_S
    low, high = watermarks(bootstrap, TopicPartition(topic, partition), deadline)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", **RECONNECT})
    consumer.assign([TopicPartition(topic, partition, low)])
    numbers: dict[int, int] = {}
    while (max(numbers, default=low - 1) + 1) < high:
        assert time.monotonic() < deadline, f"{len(numbers)} records of {topic}-{partition} came, {high} is the end"
        for message in consumer.consume(1000, timeout=0.5):
            assert message.error() is None, message.error()
            numbers[offset_of(message)] = int(value_of(message))
    consumer.close()
    return numbers


def kill_under_load(cluster: LocalCluster, topic: str, names: Sequence[str]) -> None:
    """Kills the processes one after the other while records are written to each partition with acks=all; checks that
    acknowledged records exist."""
    make_topic(cluster, topic)
    wait_for_replicas(cluster, topic)
    writers = [
        Writer(cluster.bootstrap, (topic, partition), {"enable.idempotence": True}) for partition in range(PARTITIONS)
    ]
    for writer in writers:
        writer.start()
    for name in names:
        cluster.kill_process(name)
        wait_for_replicas(cluster, topic)
    for writer in writers:
        writer.finish()
    for partition, writer in enumerate(writers):
        assert writer.failures == []
        numbers = stored(cluster.bootstrap, topic, partition)
        lost = {offset: number for offset, number in writer.acknowledged.items() if numbers.get(offset) != number}
        assert not lost
        assert sorted(numbers.values()) == list(range(writer.sent))


def test_each_process_is_killed_once_and_nothing_acknowledged_is_lost(cluster: LocalCluster, topic: str) -> None:
    kill_under_load(cluster, topic, NAMES)
    log = cluster.tail(1 << 24)
    assert "fetching from a leader failed" in log
    assert "a replica fetcher failed" not in log


@pytest.mark.cluster
def test_processes_are_killed_again_and_again(
    cluster: LocalCluster, topic: str, request: pytest.FixtureRequest
) -> None:
    draw = random.Random(request.config.getoption("--cluster-seed"))
    kill_under_load(cluster, topic, draw.choices(NAMES, k=request.config.getoption("--cluster-kills")))


def is_alive(pid: int) -> bool:
    """True unless the process is gone, or only waits for its parent to notice its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_data_and_ids_last_over_restarts_and_brokers_are_added(two_brokers: LocalCluster, topic: str) -> None:
    cluster = two_brokers
    first = cluster.bootstrap
    write(first, topic, [0, 1, 2])
    assert cluster.stop() == 0
    *brokers, last = re.findall(r'^(\S+) \| .*"stopped"', cluster.tail(), re.MULTILINE)
    assert (sorted(brokers), last) == (["broker-1", "broker-2"], "controller")
    cluster.brokers = 3
    cluster.start()
    assert cluster.bootstrap.split(",")[:2] == first.split(",")
    assert len(cluster.bootstrap.split(",")) == 3
    assert stored(cluster.bootstrap, topic, 0) == {0: 0, 1: 1, 2: 2}
    pids = cluster.pids()
    cluster.kill9()
    wait_until(lambda: not any(map(is_alive, pids.values())), lambda: f"orphans of {pids}")
    cluster.start()
    assert stored(cluster.bootstrap, topic, 0) == {0: 0, 1: 1, 2: 2}
    cluster.brokers = 2
    assert cluster.stop() == 0
    refused = run(cluster.command(), check=False)
    assert refused.returncode == 1
    assert b"has 3 brokers, but --brokers is 2" in refused.stderr
