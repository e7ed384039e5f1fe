"""Kafka Connect with two workers, and MirrorMaker 2 between two clusters, each killed; `make test-applications`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.applications.connect import WORKER, Jvm, Reader, put, until
from tests.interop.applications.figures import EXACTLY_ONCE, Figures
from tests.interop.brokers import ALONE, ApacheKafka, Broker
from tests.interop.processes import free_port

pytestmark = [pytest.mark.applications, pytest.mark.timeout(900)]

LINES = 5_000
"""Records between two kills."""
GROUP = "translated"


@pytest.fixture
def properties() -> dict[str, str]:
    return dict(ALONE)


def test_a_file_goes_through_two_workers_exactly_once_when_one_is_killed(
    broker: Broker, tmp_path: Path, keep: Callable[[Figures], None]
) -> None:
    lines, copy = tmp_path / "lines.txt", tmp_path / "copy.txt"
    ports = [free_port(), free_port()]
    workers = [
        Jvm(
            f"worker-{number}", tmp_path, "org.apache.kafka.connect.cli.ConnectDistributed",
            {**WORKER, "bootstrap.servers": broker.bootstrap, "listeners": f"http://127.0.0.1:{port}"},
        )
        for number, port in enumerate(ports)
    ]  # fmt: skip
    for worker in workers:
        worker.start()

    def append(begin: int) -> None:
        with lines.open("a") as file:
            file.writelines(f"line {number}\n" for number in range(begin, begin + LINES))

    append(0)
    source = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(lines), "topic": "lines"}
    sink = {"connector.class": "FileStreamSink", "tasks.max": "1", "file": str(copy), "topics": "lines"}
    until(lambda: put(ports[0], "source", source), "the source")
    until(lambda: put(ports[0], "sink", sink), "the sink")
    reader = Reader(broker.bootstrap, "lines")
    until(lambda: reader.has(LINES // 2), "half of the lines")
    workers[0].kill9()
    append(LINES)
    until(lambda: reader.has(2 * LINES), "all lines by one worker")
    workers[0].start()
    broker.kill9()
    broker.restart()
    append(2 * LINES)
    until(lambda: reader.has(3 * LINES), "all lines")
    assert reader.values == [f"line {number}" for number in range(3 * LINES)]
    until(lambda: len(set(copy.read_text().splitlines())) >= 3 * LINES, "the lines in the sink's file")
    assert set(copy.read_text().splitlines()) == set(reader.values)
    keep(
        Figures(
            "Kafka Connect", "copy of a file", EXACTLY_ONCE, 3 * LINES, len(reader.values), "one worker of two, broker"
        )
    )


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Broker]:
    """Yields Apache Kafka as the other cluster."""
    kafka = ApacheKafka(tmp_path / "other", ALONE)
    kafka.start()
    yield kafka
    kafka.stop()
    kafka.forget()


def mirror(here: Broker, there: Broker) -> dict[str, str]:
    """Returns the settings of MirrorMaker 2 for both ways."""
    both = {
        f"{way}.{key}": value
        for way in ("here->there", "there->here")
        for key, value in {
            "enabled": "true",
            "topics": "made-.*",
            "emit.checkpoints.interval.seconds": "1",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "1",
            "offset.lag.max": "0",
        }.items()
    }
    names = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", "offset.storage", "status.storage")
    return {
        "clusters": "here, there",
        "here.bootstrap.servers": here.bootstrap,
        "there.bootstrap.servers": there.bootstrap,
        **{f"{name}.replication.factor": "1" for name in (*names, "config.storage")},
        "replication.factor": "1",
        "here.exactly.once.source.support": "enabled",
        "there.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://127.0.0.1:{free_port()}",
        "scheduled.rebalance.max.delay.ms": "1000",
        **both,
    }


def test_mirrormaker_copies_both_ways_and_translates_offsets(
    broker: Broker, other: Broker, tmp_path: Path, keep: Callable[[Figures], None]
) -> None:
    clusters = {"here": broker, "there": other}
    sent: dict[str, list[str]] = {"here": [], "there": []}

    def send(count: int) -> None:
        for name, cluster in clusters.items():
            values = [f"{name} {number}" for number in range(len(sent[name]), len(sent[name]) + count)]
            producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
            for value in values:
                producer.produce(f"made-{name}", value, partition=0)
            assert producer.flush(60) == 0
            sent[name] += values

    for name, cluster in clusters.items():
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(f"made-{name}", 1, 1)])[f"made-{name}"].result()
    send(LINES)
    member = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP})

    def commit(offset: int) -> None:
        member.commit(offsets=[TopicPartition("made-here", 0, offset)], asynchronous=False)

    commit(LINES // 2)  # MirrorMaker looks for groups when it starts
    maker = Jvm("mirror", tmp_path, "org.apache.kafka.connect.mirror.MirrorMaker", mirror(broker, other))
    maker.start()
    readers = {
        "here": Reader(other.bootstrap, "here.made-here"),
        "there": Reader(broker.bootstrap, "there.made-there"),
    }
    until(lambda: all(reader.has(LINES // 2) for reader in readers.values()), "the first half")
    maker.kill9()
    send(LINES)
    maker.start()
    until(lambda: all(reader.has(2 * LINES) for reader in readers.values()), "all records")
    assert {name: reader.values for name, reader in readers.items()} == sent
    commit(2 * LINES)  # after a start, it translates only offsets behind those that it had copied before
    translated = Consumer({"bootstrap.servers": other.bootstrap, "group.id": GROUP})
    _, end = translated.get_watermark_offsets(TopicPartition("here.made-here", 0))
    until(lambda: LINES < offset_of(translated) <= end, "the group's offset on the other cluster")
    received = sum(len(reader.values) for reader in readers.values())
    keep(Figures("MirrorMaker 2", "copy, offsets of groups", EXACTLY_ONCE, 4 * LINES, received, "program"))


def offset_of(member: Consumer) -> int:
    (partition,) = member.committed([TopicPartition("here.made-here", 0)])
    return partition.offset
