"""Tests partitions that Odradek leads and an Apache Kafka broker follows, under Apache Kafka's own controller."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.brokers import Odradek
from tests.interop.consumed import value_of
from tests.interop.processes import run
from tests.interop.quorum import ApacheNode, Quorum
from tests.waiting import eventually

LEADER, FOLLOWER = 1, 2
SESSION_MS = 9_000
MAX_LAG_MS = 3_000
"""Less than a session timeout, so that the leader notices a stopped follower before the controller does."""
SOON_S = 90
PATIENT = {"message.timeout.ms": 300_000, "retry.backoff.max.ms": 500, "reconnect.backoff.max.ms": 500}
"""Options of a producer that continues through failures of brokers."""


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    quorum = Quorum(tmp_path_factory.mktemp("leading"), session_ms=SESSION_MS)
    quorum.controller.start()
    yield quorum
    quorum.controller.stop()
    quorum.controller.forget()


@pytest.fixture(scope="module")
def leader(quorum: Quorum) -> Iterator[Odradek]:
    lag: dict[str, Any] = {"replica.lag.time.max.ms": str(MAX_LAG_MS)}
    broker = quorum.odradek(LEADER, **lag)
    broker.start()
    yield broker
    assert broker.stop() == 0
    broker.forget()


@pytest.fixture(scope="module")
def follower(quorum: Quorum, leader: Odradek) -> Iterator[ApacheNode]:
    broker, _ = quorum.apache(FOLLOWER)
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


@pytest.fixture
def replicated(leader: Odradek, follower: ApacheNode, topic: str) -> str:
    """Creates a topic that Odradek leads and Apache Kafka follows, which needs both for acks=all."""
    admin = AdminClient({"bootstrap.servers": leader.bootstrap})
    new = NewTopic(topic, 1, replica_assignment=[[LEADER, FOLLOWER]], config={"min.insync.replicas": "2"})
    admin.create_topics([new])[topic].result(SOON_S)
    eventually(lambda: in_sync(leader, topic), {LEADER, FOLLOWER})
    return topic


def in_sync(broker: Odradek, topic: str) -> set[int]:
    metadata = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(topic, SOON_S)
    return set(metadata.topics[topic].partitions[0].isrs) if metadata.topics[topic].partitions else set()


def produced(broker: Odradek, topic: str, values: range, **options: object) -> set[int]:
    """Writes records, once each, and returns the codes of the answers; 0 for no error."""
    codes: set[int] = set()

    def answered(error: KafkaError | None, _: Message) -> None:
        codes.add(0 if error is None else error.code())

    settings = {"bootstrap.servers": broker.bootstrap, "acks": "all", "retries": 0, "linger.ms": 0, **options}
    producer = Producer(settings)
    for value in values:
        producer.produce(topic, b"%d" % value, on_delivery=answered)
    assert producer.flush(SOON_S) == 0
    return codes


def consumed(broker: Odradek, topic: str) -> list[int]:
    words = ["kcat", "-b", broker.bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q"]
    return [int(line) for line in run(words).stdout.decode().splitlines()]


def segment(data: Path, topic: str) -> bytes:
    return (data / f"{topic}-0" / f"{0:020d}.log").read_bytes()


def assert_alike(leader: Odradek, follower: ApacheNode, topic: str) -> None:
    """Checks that both logs are equal, byte for byte."""
    own = segment(leader.data, topic)
    assert own
    eventually(lambda: segment(follower.data, topic) == own, True)


def test_acks_all_is_committed_by_a_follower_of_apache_kafka(
    leader: Odradek, follower: ApacheNode, replicated: str
) -> None:
    assert produced(leader, replicated, range(2000)) == {0}
    assert consumed(leader, replicated) == [*range(2000)]
    assert_alike(leader, follower, replicated)


def test_a_follower_that_stops_leaves_the_isr_and_comes_back_into_it(
    leader: Odradek, follower: ApacheNode, replicated: str
) -> None:
    assert produced(leader, replicated, range(100)) == {0}
    follower.signal(signal.SIGSTOP)
    try:
        # It is not behind before there is something that it has not got.
        assert produced(leader, replicated, range(100, 110), acks=1) == {0}
        eventually(lambda: in_sync(leader, replicated), {LEADER})
        assert produced(leader, replicated, range(110, 120)) == {KafkaError.NOT_ENOUGH_REPLICAS}
        assert consumed(leader, replicated) == [*range(100)], "nothing is committed below min.insync.replicas"
    finally:
        follower.signal(signal.SIGCONT)
    eventually(lambda: in_sync(leader, replicated), {LEADER, FOLLOWER})
    assert produced(leader, replicated, range(110, 120)) == {0}
    assert consumed(leader, replicated) == [*range(120)]
    assert_alike(leader, follower, replicated)
    log = leader.tail(100_000)
    assert f'"partition": "{replicated}-0", "isr": [1], "instead_of": [1, 2]' in log
    assert f'"partition": "{replicated}-0", "isr": [1, 2], "instead_of": [1]' in log


def test_a_follower_that_is_killed_comes_back_with_another_epoch(
    leader: Odradek, follower: ApacheNode, replicated: str
) -> None:
    follower.kill9()
    assert produced(leader, replicated, range(100), acks=1) == {0}
    eventually(lambda: in_sync(leader, replicated), {LEADER})
    follower.start()
    eventually(lambda: in_sync(leader, replicated), {LEADER, FOLLOWER})
    assert produced(leader, replicated, range(100, 200)) == {0}
    assert consumed(leader, replicated) == [*range(200)]
    assert_alike(leader, follower, replicated)


@pytest.mark.cluster
def test_a_leader_that_stops_hands_over_and_follows_when_it_is_back(
    leader: Odradek, follower: ApacheNode, replicated: str
) -> None:
    assert produced(leader, replicated, range(500)) == {0}
    assert leader.stop() == 0
    assert_alike(leader, follower, replicated)
    leader.start()
    eventually(lambda: in_sync(leader, replicated), {LEADER, FOLLOWER})
    assert consumed(leader, replicated) == [*range(500)]
    assert produced(leader, replicated, range(500, 600)) == {0}
    assert_alike(leader, follower, replicated)


class SteadyProducer:
    """Writes consecutive numbers until it is stopped, with Kafka's guarantees, and records which were acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: set[int] = set()
        self.lost: set[int] = set()
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0, **PATIENT}
        self._producer = Producer(settings)
        self._topic = topic
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> SteadyProducer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        self._thread.join()

    def _run(self) -> None:
        for number in itertools.count():
            if self._is_stopped.is_set():
                break
            self._producer.produce(self._topic, b"%d" % number, on_delivery=self._delivered)
            self._producer.poll(0.002)
        assert self._producer.flush(SOON_S) == 0

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        (self.acknowledged if error is None else self.lost).add(int(value_of(message)))


@pytest.mark.cluster
def test_nothing_acknowledged_is_lost_or_doubled_as_either_is_killed(
    leader: Odradek, follower: ApacheNode, replicated: str
) -> None:
    with SteadyProducer(leader.bootstrap, replicated) as producer:
        for victim in (leader, follower, leader):
            before = len(producer.acknowledged)
            victim.kill9()
            victim.start()
            eventually(lambda: in_sync(leader, replicated), {LEADER, FOLLOWER})
            eventually(lambda before=before: len(producer.acknowledged) > before, True)  # type: ignore[misc]
    assert not producer.lost
    assert consumed(leader, replicated) == sorted(producer.acknowledged)
    assert_alike(leader, follower, replicated)
