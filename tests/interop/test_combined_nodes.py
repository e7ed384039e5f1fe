"""Tests three nodes that are broker and controller: any one of them may die, and no acknowledged record and no
committed change is lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.consumed import offset_of, value_of
from tests.interop.either_node import EitherNode, Make
from tests.interop.load import Writer
from tests.interop.several_controllers import DIRECTORIES, ODRADEK, SeveralControllers, described, leader_of
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

SOON_S = 120
READ_S = 10
TOPIC = "orders"
SAFE = {"min.insync.replicas": "2"}
PATIENT = {"message.timeout.ms": SOON_S * 1000, "enable.idempotence": True}
MIXTURE = (Make.ODRADEK, Make.APACHE, Make.APACHE)


class Machines:
    """Three nodes of both roles, and a writer whose records all replicas must have."""

    def __init__(self, quorum: SeveralControllers) -> None:
        self.quorum = quorum
        self.created: list[str] = []

    @property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.quorum.bootstrap})

    def create(self, name: str, replicas: int = 3) -> None:
        config = SAFE if replicas > 1 else {}
        new = [NewTopic(name, 1, replicas, config=config)]
        admin = self.admin  # a client that is gone drops its requests
        created = admin.create_topics(new, operation_timeout=SOON_S, request_timeout=SOON_S)
        created[name].result(SOON_S)
        self.created.append(name)

    @property
    def topics(self) -> list[str]:
        names = self.admin.list_topics(timeout=SOON_S).topics
        return sorted(name for name in names if not name.startswith("__"))

    def isr(self, topic: str = TOPIC) -> list[int]:
        return sorted(self.admin.list_topics(topic, SOON_S).topics[topic].partitions[0].isrs)

    def lags(self) -> dict[int, object]:
        """Returns the lag of each voter; None if it is unknown."""
        replicas = described(self.quorum.bootstrap)["replicas"]
        assert isinstance(replicas, list)
        return {replica["node"]: replica["lag"] for replica in replicas if replica["role"] != "observer"}

    def writer(self) -> Writer:
        writer = Writer(self.quorum.bootstrap, (TOPIC, 0), PATIENT)
        writer.start()
        return writer

    def lose(self, node: EitherNode, number: int) -> None:
        """Kills a machine, changes the cluster without it, and starts it again."""
        self.create(f"before-{number}")
        node.kill9()
        self.create(f"after-{number}", replicas=2)
        node.start()
        eventually(self.isr, sorted(DIRECTORIES), within_s=SOON_S)

    def check(self, writer: Writer) -> None:
        """Ends the writer, and checks that everything acknowledged is where it was acknowledged."""
        writer.finish()
        assert not writer.failures
        assert len(writer.acknowledged) == writer.sent > 100
        assert records(self.quorum.bootstrap, writer.acknowledged) == writer.acknowledged
        assert self.topics == sorted(self.created)


def records(bootstrap: str, expected: Mapping[int, int]) -> dict[int, int]:
    """Reads the topic up to the last expected offset; returns the numbers by offset."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: dict[int, int] = {}
    while max(found, default=-1) < max(expected):
        messages = consumer.consume(1_000, READ_S)
        assert messages, "no records come any more"
        assert not [message.error() for message in messages if message.error() is not None]
        found |= {offset_of(message): int(value_of(message)) for message in messages}
    consumer.close()
    return {offset: number for offset, number in found.items() if offset in expected}


def running(quorum: SeveralControllers) -> Iterator[Machines]:
    try:
        quorum.start()
        yield Machines(quorum)
    finally:
        quorum.forget()


@pytest.fixture(params=["in the log", "static"])
def machines(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Machines]:
    are_static = request.param == "static"
    yield from running(SeveralControllers(tmp_path, are_brokers=True, are_static=are_static))


@pytest.fixture
def mixture(tmp_path: Path) -> Iterator[Machines]:
    yield from running(SeveralControllers(tmp_path, MIXTURE, are_brokers=True))


def test_each_machine_may_be_lost_under_load(machines: Machines) -> None:
    machines.create(TOPIC)
    writer = machines.writer()
    for number, node_id in enumerate(DIRECTORIES):
        machines.lose(machines.quorum.nodes[node_id], number)
    machines.lose(machines.quorum.nodes[leader_of(machines.quorum.bootstrap)], len(DIRECTORIES))
    machines.check(writer)


def test_all_machines_are_lost_at_once_and_come_back(machines: Machines) -> None:
    machines.create(TOPIC)
    writer = machines.writer()
    machines.create("more")
    for node in machines.quorum.nodes.values():
        node.kill9()
    machines.quorum.start()
    eventually(machines.isr, sorted(DIRECTORIES), within_s=SOON_S)
    machines.check(writer)


def test_all_machines_stop_together_and_come_back(machines: Machines) -> None:
    machines.create(TOPIC)
    writer = machines.writer()
    eventually(lambda: len(writer.acknowledged) > 100, True, within_s=SOON_S)
    for node in machines.quorum.nodes.values():
        node.signal(signal.SIGTERM)
    assert [node.wait() for node in machines.quorum.nodes.values()] == [0, 0, 0]
    machines.quorum.start()
    eventually(machines.isr, sorted(DIRECTORIES), within_s=SOON_S)
    machines.check(writer)


def test_machines_of_both_kinds_lead_and_nothing_is_lost(mixture: Machines) -> None:
    mixture.create(TOPIC)
    writer = mixture.writer()
    led: set[Make] = set()
    for number in range(20):
        leader = mixture.quorum.nodes[leader_of(mixture.quorum.bootstrap)]
        led.add(leader.make)
        mixture.lose(leader, number)
        if led == {Make.ODRADEK, Make.APACHE}:
            break
    assert led == {Make.ODRADEK, Make.APACHE}
    mixture.check(writer)


def test_a_lone_machine_grows_to_three_under_load(tmp_path: Path) -> None:
    quorum = SeveralControllers(
        tmp_path, ODRADEK, {"controller.quorum.auto.join.enable": "true"}, are_brokers=True, is_grown=True
    )
    machines = Machines(quorum)
    first, *others = quorum.nodes.values()
    try:
        first.start()
        machines.create(TOPIC, replicas=1)
        writer = machines.writer()
        for node in others:
            node.start()
            eventually(lambda node=node: machines.lags().get(node.node_id), 0, within_s=SOON_S)  # type: ignore[misc]
        machines.create("on-all")
        eventually(machines.lags, dict.fromkeys(DIRECTORIES, 0), within_s=SOON_S)
        assert first.is_running
        machines.check(writer)
        first.kill9()
        machines.create("without-the-first", replicas=2)
        assert leader_of(quorum.bootstrap) != first.node_id
    finally:
        quorum.forget()
