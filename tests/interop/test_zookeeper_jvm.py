"""Apache ZooKeeper, and clients and tools of Kafka 0.8 to 1.1, before Odradek with zookeeper.connect."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.interop.brokers import Odradek
from tests.interop.zookeeper import ZooKeeper, old_tool, znodes

pytestmark = [pytest.mark.zookeeper, pytest.mark.odradek_only]

SOON_S = 60
SESSION_MS = 2_000
TOPICS = "kafka.admin.TopicCommand"
VERSIONS = ("0.8.2.2", "0.9.0.1", "0.10.2.2", "1.1.1")


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
    broker.stop()
    broker.forget()


def started(data: Path, connect: str, **options: str) -> Odradek:
    properties = {
        "zookeeper.connect": connect,
        "zookeeper.session.timeout.ms": str(SESSION_MS),
        "zookeeper.connection.timeout.ms": "60000",  # a start on a busy machine
        "offsets.topic.num.partitions": "1",
        **{key.replace("_", "."): value for key, value in options.items()},
    }
    broker = Odradek(data, properties)
    broker.start()
    with znodes(connect) as client:
        until(lambda: client.exists("/controller"), broker)
    return broker


def until(condition: Callable[[], object], broker: Odradek, patience_s: float = SOON_S) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, broker.tail()
        time.sleep(0.05)  # the znodes of others are looked at, not waited for


def produce(broker: Odradek, topic: str, values: range) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, str(value).encode())
    assert producer.flush(SOON_S) == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_tools_create_alter_and_delete_topics(broker: Odradek, version: str) -> None:
    connect, name = broker.properties["zookeeper.connect"], f"topic-{version}"

    def topics(*arguments: str) -> str:
        return old_tool(version, TOPICS, "--zookeeper", connect, "--topic", name, *arguments)

    with znodes(connect) as client:
        topics("--create", "--partitions", "2", "--replication-factor", "1", "--config", "retention.ms=60000")
        until(lambda: client.exists(f"/brokers/topics/{name}/partitions/1/state"), broker)
        topics("--alter", "--partitions", "3", "--config", "retention.ms=70000")
        until(lambda: client.exists(f"/brokers/topics/{name}/partitions/2/state"), broker)
        described = topics("--describe")
        assert "PartitionCount:3" in described
        assert "retention.ms=70000" in described
        assert described.count("Leader: 1") == 3
        produce(broker, name, range(3))
        topics("--delete")
        until(lambda: not client.exists(f"/admin/delete_topics/{name}"), broker)
        assert not client.exists(f"/brokers/topics/{name}")
        assert not client.exists(f"/config/topics/{name}")


def test_offsets_are_exported_and_imported(broker: Odradek, tmp_path: Path) -> None:
    connect, dump = broker.properties["zookeeper.connect"], tmp_path / "offsets"
    with znodes(connect) as client:
        client.create("/consumers/moved/offsets/read/0", b"7", makepath=True)
        export = ("--zkconnect", connect, "--group", "moved", "--output-file", str(dump))
        old_tool("0.8.2.2", "kafka.tools.ExportZkOffsets", *export)
        assert dump.read_text().strip().endswith(":7")
        client.set("/consumers/moved/offsets/read/0", b"1")
        old_tool("0.8.2.2", "kafka.tools.ImportZkOffsets", "--zkconnect", connect, "--input-file", str(dump))
        assert client.get("/consumers/moved/offsets/read/0")[0] == b"7"


def test_a_session_that_expires_comes_back(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    broker = started(tmp_path / "data", f"{zookeeper.address}/expiry")
    with znodes(f"{zookeeper.address}/expiry") as client:
        before = client.get("/brokers/ids/1")[1].ephemeralOwner
        broker.signal(signal.SIGSTOP)
        until(lambda: not client.exists("/brokers/ids/1"), broker)
        broker.signal(signal.SIGCONT)
        until(lambda: client.exists("/brokers/ids/1"), broker)
        assert client.get("/brokers/ids/1")[1].ephemeralOwner != before
        until(lambda: client.exists("/controller"), broker)
        until(lambda: client.get("/controller_epoch")[0] == b"2", broker)
    broker.forget()


def test_a_broker_that_was_killed_waits_for_its_last_session(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    broker = started(tmp_path / "data", f"{zookeeper.address}/killed")
    with znodes(f"{zookeeper.address}/killed") as client:
        before = client.get("/brokers/ids/1")[1].ephemeralOwner
        broker.kill9()
        broker.start()
        until(lambda: (node := client.exists("/brokers/ids/1")) is not None and node.ephemeralOwner != before, broker)
        other = Odradek(tmp_path / "other", broker.properties)
        with pytest.raises(AssertionError, match="belongs to another broker"):
            other.start()
        other.forget()
    assert broker.stop() == 0
    broker.forget()
