"""Tests share groups with the Java client: KafkaShareConsumer of Apache Kafka 4.3.1."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.sharing import EXPLICIT, LOCK_S, SHORT, Consumers, Record, offsets, share_groups, start_client


@pytest.fixture
def properties() -> dict[str, str]:
    return SHORT


def test_more_consumers_than_partitions_share_the_records(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic, share_record_lock_duration_ms="30000")
    names = ("a", "b", "c")
    for name in names:
        consumers.open(name, topic, "max.poll.records=10")
        consumers.poll(name, timeout_s=1)
    consumers.produce(topic, 300, "batch.size=1")
    seen: dict[str, list[Record]] = {name: [] for name in names}
    deadline = time.monotonic() + 30
    while sum(map(len, seen.values())) < 300 and time.monotonic() < deadline:
        for name in names:
            seen[name] += consumers.poll(name, timeout_s=0.2)
    assert offsets([record for records in seen.values() for record in records]) == list(range(300))
    assert all(seen.values()), {name: len(records) for name, records in seen.items()}
    for name in names:
        consumers.close(name)


def test_implicit_acknowledgement_is_done_by_the_next_poll(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 10)
    consumers.open("a", topic)
    assert offsets(consumers.poll("a", 10)) == list(range(10))
    consumers.poll("a", timeout_s=0.5)
    consumers.close("a")
    consumers.open("b", topic)
    assert consumers.poll("b", timeout_s=LOCK_S + 1) == []
    consumers.close("b")


def test_each_record_is_accepted_released_or_rejected(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 6)
    consumers.open("a", topic, EXPLICIT)
    assert offsets(consumers.poll("a", 6)) == list(range(6))
    consumers.acknowledge("a", "ACCEPT", 0, 1, 4)
    consumers.acknowledge("a", "RELEASE", 2, 5)
    consumers.acknowledge("a", "REJECT", 3)
    assert consumers.commit("a") == []
    again = consumers.poll("a", 2)
    assert [(record.offset, record.delivery) for record in again] == [(2, 2), (5, 2)]
    consumers.acknowledge("a", "ACCEPT", 2, 5)
    assert consumers.commit("a") == []
    consumers.close("a")
    described = share_groups(broker, "--describe", "--group", topic)
    assert re.search(rf"^{topic} +{topic} +0 +\d+ +0$", described, re.MULTILINE), described


def test_a_record_is_not_delivered_more_often_than_its_limit(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic, share_delivery_count_limit="3")
    consumers.produce(topic, 1)
    consumers.open("a", topic, EXPLICIT)
    deliveries = []
    records = consumers.poll("a")
    while records:
        deliveries += [record.delivery for record in records]
        consumers.acknowledge("a", "RELEASE", 0)
        consumers.commit("a")
        records = consumers.poll("a", timeout_s=3)
    assert deliveries == [1, 2, 3]
    consumers.close("a")


def test_a_lock_that_is_renewed_holds(consumers: Consumers, broker: Broker, topic: str) -> None:
    lock_s = 4
    consumers.create(broker, topic, share_record_lock_duration_ms=str(1000 * lock_s))
    consumers.produce(topic, 1)
    consumers.open("a", topic, EXPLICIT)
    consumers.open("b", topic, EXPLICIT)
    assert offsets(consumers.poll("a", 1)) == [0]
    for _ in range(4):
        time.sleep(lock_s / 2)  # half of the lock's time, in real time as the client has no clock of its own
        consumers.acknowledge("a", "RENEW", 0)
        assert consumers.commit("a") == []
        assert consumers.poll("b", timeout_s=0.1) == []
        assert [(record.offset, record.delivery) for record in consumers.poll("a", 1)] == [(0, 1)]
    consumers.acknowledge("a", "ACCEPT", 0)
    assert consumers.commit("a") == []
    assert consumers.poll("b", timeout_s=lock_s + 1) == []
    consumers.close("a")
    consumers.close("b")


def test_a_lock_that_runs_out_gives_the_records_to_another(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 5)
    consumers.open("a", topic, EXPLICIT)
    consumers.open("b", topic, EXPLICIT)
    assert offsets(consumers.poll("a", 5)) == list(range(5))
    again = consumers.poll("b", 5)
    assert [(record.offset, record.delivery) for record in again] == [(offset, 2) for offset in range(5)]
    consumers.acknowledge("a", "ACCEPT", *range(5))
    assert "InvalidRecordStateException" in "".join(consumers.commit("a"))
    consumers.acknowledge("b", "ACCEPT", *range(5))
    assert consumers.commit("b") == []
    consumers.close("a")
    consumers.close("b")


def test_what_a_consumer_had_that_crashed_is_delivered_again(
    consumers: Consumers, broker: Broker, topic: str, tmp_path: Path
) -> None:
    consumers.create(broker, topic, share_record_lock_duration_ms="30000")
    consumers.produce(topic, 5)
    crashing = Consumers(start_client(tmp_path / "crashing.log"))
    crashing.bootstrap = broker.bootstrap
    crashing.open("a", topic, EXPLICIT)
    assert offsets(crashing.poll("a", 5)) == list(range(5))
    crashing.client.kill9()
    consumers.open("b", topic)
    again = consumers.poll("b", 5)
    assert [(record.offset, record.delivery) for record in again] == [(offset, 2) for offset in range(5)]
    consumers.close("b")


def test_a_broker_that_is_killed_loses_no_record_and_no_acknowledgement(
    consumers: Consumers, broker: Broker, topic: str
) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 100, "batch.size=1")
    consumers.open("a", topic, EXPLICIT, "max.poll.records=10")
    accepted: list[int] = []
    for turn in range(6):
        records = consumers.poll("a", 1, timeout_s=30)
        taken = [record.offset for record in records[::2]]
        consumers.acknowledge("a", "ACCEPT", *taken)
        consumers.acknowledge("a", "RELEASE", *(record.offset for record in records[1::2]))
        if not consumers.commit("a"):
            accepted += taken
        if turn % 2:
            broker.kill9()
            broker.start()
    assert len(accepted) == len(set(accepted))
    consumers.client.ask(f"open b {broker.bootstrap} {topic} {topic}")
    deadline = time.monotonic() + 60
    rest: list[Record] = []
    while len({record.offset for record in rest} | set(accepted)) < 100 and time.monotonic() < deadline:
        rest += consumers.poll("b", timeout_s=1)
    assert {record.offset for record in rest} | set(accepted) == set(range(100))
    assert not set(accepted) & {record.offset for record in rest}
    consumers.close("a")
    consumers.close("b")


def test_records_of_aborted_transactions_are_not_delivered_to_who_reads_committed(
    consumers: Consumers, broker: Broker, topic: str
) -> None:
    consumers.create(broker, topic, share_isolation_level="read_committed")
    consumers.client.ask(f"abort {broker.bootstrap} {topic} 5")
    consumers.produce(topic, 3)
    consumers.open("a", topic)
    assert [record.value for record in consumers.poll("a", 3)] == ["value-0", "value-1", "value-2"]
    consumers.close("a")


def test_kafka_dump_log_reads_the_state_topic(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 10)
    consumers.open("a", topic)
    consumers.poll("a", 10)
    consumers.poll("a", timeout_s=0.5)
    consumers.close("a")
    broker.stop()
    logs = [str(log) for log in broker.data.glob("__share_group_state-*/*.log") if log.stat().st_size]
    dumped = jvm.tool("kafka-dump-log", "--share-group-state-decoder", "--files", ",".join(logs))
    assert '"stateBatches":[{"firstOffset":0,"lastOffset":9,"deliveryState":2,"deliveryCount":1}]' in dumped
