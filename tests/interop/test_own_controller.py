"""Tests brokers of Odradek under a controller of Odradek: they replicate, and survive failures of each other and of the
controller."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.brokers import Odradek
from tests.interop.own_quorum import OdradekNode, OwnQuorum
from tests.interop.processes import free_port, run
from tests.interop.quorum import CONTROLLER_ID
from tests.waiting import eventually

SOON_S = 60
PATIENT = {"message.timeout.ms": 120_000, "retry.backoff.max.ms": 200, "reconnect.backoff.max.ms": 200}
"""Options of a producer that continues through failures of brokers."""


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnQuorum]:
    quorum = OwnQuorum(tmp_path_factory.mktemp("own"), metadata__log__max__record__bytes__between__snapshots="4000")
    quorum.controller.start()
    yield quorum
    assert quorum.controller.stop() == 0
    quorum.controller.forget()


@pytest.fixture(scope="module")
def brokers(quorum: OwnQuorum) -> Iterator[list[OdradekNode]]:
    brokers = [quorum.odradek(1), quorum.odradek(2)]
    for broker in brokers:
        broker.start()
    yield brokers
    for broker in brokers:
        assert broker.stop() == 0
        broker.forget()


def bootstrap(brokers: list[OdradekNode]) -> str:
    return ",".join(broker.bootstrap for broker in brokers)


def leader_and_isr(broker: OdradekNode, topic: str) -> tuple[int, list[int]]:
    metadata = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(topic, SOON_S)
    partitions = metadata.topics[topic].partitions
    return (partitions[0].leader, sorted(partitions[0].isrs)) if partitions else (-1, [])


def created(brokers: list[OdradekNode], topic: str) -> str:
    """Creates a topic that the first broker leads and the second follows."""
    admin = AdminClient({"bootstrap.servers": brokers[0].bootstrap})
    admin.create_topics([NewTopic(topic, 1, replica_assignment=[[1, 2]])])[topic].result(SOON_S)
    for broker in brokers:
        eventually(lambda broker=broker: leader_and_isr(broker, topic), (1, [1, 2]))  # type: ignore[misc]
    return topic


def produced(brokers: list[OdradekNode], topic: str, values: range, then: Callable[[], None] = lambda: None) -> None:
    """Writes records with acks=all; calls `then` while they are in flight."""
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap(brokers), "enable.idempotence": True, **PATIENT})
    for value in values:
        producer.produce(topic, b"%d" % value, on_delivery=lambda error, _: errors.append(error))
        if value == values[0]:
            producer.flush(SOON_S)  # it has its producer id, which only a controller gives out
        elif value == values[len(values) // 2]:
            then()
        producer.poll(0)
    assert producer.flush(SOON_S) == 0
    assert errors == [None] * len(values)


def consumed(brokers: list[OdradekNode], topic: str) -> list[int]:
    words = ["kcat", "-b", bootstrap(brokers), "-C", "-t", topic, "-o", "beginning", "-e", "-q"]
    return [int(line) for line in run(words).stdout.decode().splitlines()]


def log_bytes(broker: OdradekNode, topic: str) -> bytes:
    return (broker.data / f"{topic}-0" / f"{0:020d}.log").read_bytes()


def assert_alike(brokers: list[OdradekNode], topic: str) -> None:
    first, second = brokers
    eventually(lambda: log_bytes(first, topic) == log_bytes(second, topic) != b"", True)


def test_what_all_replicas_acknowledged_outlives_either(brokers: list[OdradekNode], topic: str) -> None:
    leader, follower = brokers
    created(brokers, topic)
    produced(brokers, topic, range(200), follower.kill9)
    eventually(lambda: leader_and_isr(leader, topic), (1, [1]))
    follower.start()
    eventually(lambda: leader_and_isr(leader, topic), (1, [1, 2]))
    produced(brokers, topic, range(200, 400), leader.kill9)
    eventually(lambda: leader_and_isr(follower, topic), (2, [2]))
    leader.start()
    eventually(lambda: leader_and_isr(follower, topic), (2, [1, 2]))
    assert consumed(brokers, topic) == [*range(400)]
    assert_alike(brokers, topic)


def test_brokers_serve_while_the_controller_is_away_and_go_on_with_it(
    quorum: OwnQuorum, brokers: list[OdradekNode], topic: str
) -> None:
    created(brokers, topic)
    produced(brokers, topic, range(100), quorum.controller.kill9)
    quorum.controller.start()
    created(brokers, f"{topic}-more")
    produced(brokers, f"{topic}-more", range(10))
    quorum.controller.restart()
    created(brokers, f"{topic}-most")
    assert consumed(brokers, topic) == [*range(100)]


def test_a_broker_that_was_away_gets_the_metadata_by_a_snapshot(
    quorum: OwnQuorum, brokers: list[OdradekNode], topic: str
) -> None:
    away, other = brokers[1], brokers[0]
    assert away.stop() == 0
    quorum.controller.stop()
    quorum.controller.settings |= {"metadata.max.retention.bytes": "0"}
    quorum.controller.data.with_name("controller.properties").unlink()
    quorum.controller.start()
    admin = AdminClient({"bootstrap.servers": other.bootstrap})
    names = [f"{topic}-{index}" for index in range(60)]
    for future in admin.create_topics([NewTopic(name, 1, replica_assignment=[[1]]) for name in names]).values():
        future.result(SOON_S)
    folder = quorum.controller.data / "__cluster_metadata-0"
    eventually(lambda: len([*folder.glob("*.checkpoint")]), 1)
    eventually(lambda: (folder / f"{0:020d}-0000000000.checkpoint").exists(), False)
    for stored in (away.data / "__cluster_metadata-0").iterdir():
        stored.unlink()  # all that it knew
    away.start()
    assert "started again from a snapshot of the metadata" in away.tail()
    assert set(names) <= set(AdminClient({"bootstrap.servers": away.bootstrap}).list_topics(timeout=SOON_S).topics)


def test_a_controller_that_is_a_broker_too_replicates(tmp_path: Path, topic: str) -> None:
    quorum = OwnQuorum(tmp_path, is_broker=True)
    both, other = quorum.controller, quorum.odradek(1)
    for node in (both, other):
        node.start()
    admin = AdminClient({"bootstrap.servers": other.bootstrap})
    admin.create_topics([NewTopic(topic, 1, replica_assignment=[[CONTROLLER_ID, 1]])])[topic].result(SOON_S)
    eventually(lambda: leader_and_isr(both, topic), (CONTROLLER_ID, [1, CONTROLLER_ID]))
    produced([both, other], topic, range(100), other.kill9)
    eventually(lambda: leader_and_isr(both, topic), (CONTROLLER_ID, [CONTROLLER_ID]))
    other.start()
    eventually(lambda: leader_and_isr(other, topic), (CONTROLLER_ID, [1, CONTROLLER_ID]))
    assert consumed([both, other], topic) == [*range(100)]
    assert_alike([both, other], topic)
    for node in (other, both):
        assert node.stop() == 0
        node.forget()


def test_a_controller_for_others_is_formatted_first(tmp_path: Path) -> None:
    words = ["--set", "process.roles=controller", "--set", "controller.listener.names=CONTROLLER"]
    words += ["--set", f"listeners=CONTROLLER://127.0.0.1:{free_port()}", "--set", f"log.dirs={tmp_path / 'data'}"]
    ended = subprocess.run(
        [Odradek.program, "run", *words], capture_output=True, text=True, timeout=SOON_S, check=False
    )
    assert ended.returncode == 1
    starting, failed = ended.stderr.splitlines()
    assert '"event": "starting"' in starting
    assert "meta.properties is missing" in failed
