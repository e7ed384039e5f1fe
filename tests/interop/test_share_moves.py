"""Tests share groups when their broker is killed, and when they move to Apache Kafka and back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.brokers import ApacheKafka, Broker, Odradek
from tests.interop.sharing import EXPLICIT, SHORT, Consumers, Record, deliveries, offsets

pytestmark = pytest.mark.odradek_only

STATE = {**SHORT, "share.coordinator.state.topic.num.partitions": "3"}
LIMIT = 3


@pytest.fixture
def properties() -> dict[str, str]:
    return SHORT


def test_no_record_is_delivered_more_often_than_its_limit_whoever_dies(
    consumers: Consumers, broker: Broker, topic: str
) -> None:
    """The records are never accepted: each is delivered as often as the limit allows, and a killed broker doesn't
    forget a completed delivery."""
    consumers.create(broker, topic, share_delivery_count_limit=str(LIMIT))
    consumers.produce(topic, 30, "batch.size=1")
    consumers.open("a", topic, EXPLICIT, "max.poll.records=10")
    released: Counter[int] = Counter()
    last: dict[int, int] = {}
    deadline = time.monotonic() + 180
    for turn in range(60):
        records = consumers.poll("a", 1, timeout_s=20 if turn < 8 else 10)
        if not records and turn >= 8:
            break
        for record in records:
            assert record.delivery <= LIMIT, record
            assert record.delivery > released[record.offset], record
            last[record.offset] = record.delivery
        consumers.acknowledge("a", "RELEASE", *(record.offset for record in records))
        if not consumers.commit("a"):
            released.update({record.offset: record.delivery - released[record.offset] for record in records})
        if turn in (2, 5):
            broker.kill9()
            broker.start()
        assert time.monotonic() < deadline
    assert last == dict.fromkeys(range(30), LIMIT)
    consumers.close("a")


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[Odradek, ApacheKafka]]:
    """Yields both brokers for one data directory, one after the other."""
    data = tmp_path / "data"
    made = Odradek(data, STATE), ApacheKafka(data, STATE, formatted=True)
    yield made
    for broker in made:
        broker.stop()
        broker.forget()


def poll_all(consumers: Consumers, name: str, count: int) -> list[Record]:
    """Polls exactly this number of records."""
    records = consumers.poll(name, count, timeout_s=30)
    assert len(records) == count, records
    return records


def test_what_is_in_flight_moves_to_apache_kafka_and_back(
    consumers: Consumers, brokers: tuple[Odradek, ApacheKafka], topic: str
) -> None:
    odradek, apache = brokers
    odradek.start()
    consumers.create(odradek, topic, share_record_lock_duration_ms="30000")
    consumers.produce(topic, 10)
    consumers.open("a", topic, EXPLICIT)
    assert offsets(poll_all(consumers, "a", 10)) == list(range(10))
    consumers.acknowledge("a", "ACCEPT", 0, 1, 3)
    consumers.acknowledge("a", "RELEASE", 2, 5, 6)
    consumers.acknowledge("a", "REJECT", 4)
    assert consumers.commit("a") == []  # 7 to 9 stay acquired
    odradek.stop()

    apache.start()
    consumers.bootstrap = apache.bootstrap
    consumers.open("b", topic, EXPLICIT)
    assert deliveries(poll_all(consumers, "b", 6)) == [(2, 2), (5, 2), (6, 2), (7, 1), (8, 1), (9, 1)]
    consumers.acknowledge("b", "ACCEPT", 2, 8)
    consumers.acknowledge("b", "RELEASE", 5, 7)
    assert consumers.commit("b") == []  # 6 and 9 stay acquired
    apache.stop()

    odradek.start()
    consumers.bootstrap = odradek.bootstrap
    consumers.open("c", topic, EXPLICIT)
    assert deliveries(poll_all(consumers, "c", 4)) == [(5, 3), (6, 2), (7, 2), (9, 1)]
    consumers.acknowledge("c", "ACCEPT", 5, 6, 7, 9)
    assert consumers.commit("c") == []
    assert consumers.poll("c", timeout_s=1) == []
