"""Converts a cluster of Apache Kafka to Odradek, broker by broker, and back, while clients work: the directories stay,
no acknowledged record is lost, nothing is copied twice, and no group starts over."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.interop import copying
from tests.interop.clients.transactions import COMMITTED
from tests.interop.either_node import Make
from tests.interop.load import RECONNECT, Load
from tests.interop.mixture import CALM, SOON_S, Cluster
from tests.interop.processes import LineClient
from tests.interop.sharing import Consumers, start_client

TOPIC, SHARED = "under-load", "shared"
THREE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
EACH = 300
"""Number of records that the copier and the share group get at each step."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, [Make.APACHE] * 3, **CALM)
    cluster.start()
    yield cluster
    cluster.forget()


@pytest.fixture
def share_client(tmp_path: Path) -> Iterator[LineClient]:
    client = start_client(tmp_path / "share.log")
    yield client
    client.close()


class GroupReader(threading.Thread):
    """The only member of a group: reads a topic and commits, over all moves of its coordinator."""

    def __init__(self, bootstrap: str, topic: str, protocol: str) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.seen: dict[int, set[int]] = {}
        self.again = 0
        """Number of records that it got again: after each start it continues at its last commit."""
        settings: dict[str, str | int] = {
            "group.id": f"readers-{protocol}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
        settings |= {"auto.commit.interval.ms": 500}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **settings, **RECONNECT})
        self._consumer.subscribe([topic])
        self._ends: dict[int, int] | None = None

    def run(self) -> None:
        while not self._is_done():
            for message in self._consumer.consume(500, timeout=0.2):
                if message.error() is None:
                    index, offset = message.partition() or 0, message.offset() or 0
                    seen = self.seen.setdefault(index, set())
                    self.again += offset in seen
                    seen.add(offset)
        self._consumer.close()

    def _is_done(self) -> bool:
        ends = self._ends
        return ends is not None and all(
            max(self.seen.get(index, ()), default=-1) + 1 >= end for index, end in ends.items()
        )

    def finish(self, ends: dict[int, int]) -> None:
        """Reads to these ends; checks that no record was left out, and that the group never started over."""
        self._ends = ends
        self.join(SOON_S)
        assert not self.is_alive(), f"{ {index: len(seen) for index, seen in self.seen.items()} } of {ends}"
        assert self.seen == {index: {*range(end)} for index, end in ends.items()}
        assert self.again < sum(ends.values()) / 2


class SharedWork:
    """A share group whose only member accepts all records."""

    def __init__(self, cluster: Cluster, client: LineClient) -> None:
        self.sent = 0
        self._accepted: set[tuple[int, int]] = set()
        self._share = Consumers(client)
        self._share.bootstrap = cluster.bootstrap
        cluster.create(SHARED, THREE)
        self._share.configure("groups", SHARED, share_auto_offset_reset="earliest")
        self._share.open("member", SHARED, "default.api.timeout.ms=30000")
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, **RECONNECT})

    def go_on(self) -> None:
        """Produces more records; checks that all arrive, and none that was accepted before."""
        for number in range(EACH):
            self._producer.produce(SHARED, str(self.sent + number), partition=number % len(THREE))
        assert self._producer.flush(SOON_S) == 0
        self.sent += EACH
        while len(self._accepted) < self.sent:
            records = self._share.poll("member", 1, timeout_s=SOON_S)
            assert records, f"{len(self._accepted)} of {self.sent} records were accepted"
            delivered = {(record.partition, record.offset) for record in records}
            assert not delivered & self._accepted, "a record came again that had been accepted"
            refused = {int(line.split()[1]) for line in self._share.commit("member")}
            self._accepted |= {record for record in delivered if record[0] not in refused}

    def close(self) -> None:
        self._share.close("member")


@pytest.mark.cluster
@pytest.mark.timeout(3600)
def test_a_cluster_is_moved_to_odradek_and_back_under_load(
    cluster: Cluster, share_client: LineClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for topic in (TOPIC, "input", "output"):
        cluster.create(topic, THREE)
    load = Load(cluster.bootstrap, TOPIC, len(THREE))
    readers = [GroupReader(cluster.bootstrap, TOPIC, protocol) for protocol in ("classic", "consumer")]
    for reader in readers:
        reader.start()
    work = SharedWork(cluster, share_client)
    copier = copying.Copier(cluster.bootstrap, "copier", "copiers", "4.3.1", tmp_path / "copier.log")
    count = 0
    try:
        for make in (Make.ODRADEK, Make.APACHE):
            for member in cluster.members.values():
                copying.fill(cluster.bootstrap, EACH, count)
                count += EACH
                member.become(make)
                for topic, assignments in cluster.assignments.items():
                    cluster.all_in_sync(topic, assignments)
                work.go_on()
        copied = copying.read(cluster.bootstrap, COMMITTED, count, timeout_s=SOON_S)
    finally:
        copier.kill9()
    work.close()
    load.finish()
    acknowledged = load.check()
    for reader in readers:
        reader.finish({index: len(seen) for index, seen in load.reader.seen.items()})
    assert not copying.repeated(copied)
    assert {number for numbers in copied.values() for number in numbers} == {*range(count)}
    cluster.assert_replicated(TOPIC, THREE)
    with capsys.disabled():
        done = f"{acknowledged} records acknowledged, {count} copied, {work.sent} shared"
        print(f"\nthree brokers there and back: {done}, {[reader.again for reader in readers]} read again by groups")
