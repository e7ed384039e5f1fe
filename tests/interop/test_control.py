"""Tests stock clients with a broker that injects faults and advances its time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer

from tests.interop.brokers import Odradek
from tests.waiting import wait_until

pytestmark = pytest.mark.odradek_only

WITHIN_S = 60
WEEK_MS = 7 * 24 * 3_600_000
OPTIONS = {
    "odradek.profile": "test",
    "odradek.control.listener": "127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.retention.ms": "-1",
}


class Control:
    """The control server of a broker in another process."""

    def __init__(self, broker: Odradek) -> None:
        self.bootstrap = broker.bootstrap
        addresses = re.findall(r"^control (\S+)$", broker.log.read_text(), re.MULTILINE)
        self._connection = HTTPConnection(addresses[-1], timeout=WITHIN_S)

    def ask(self, method: str, path: str, **content: object) -> Any:
        headers = {"Content-Type": "application/json"}
        self._connection.request(method, path, json.dumps(content) if content else None, headers)
        answer = self._connection.getresponse()
        body = json.loads(answer.read())
        assert answer.status in (200, 201), body
        return body

    def fault(self, **fields: object) -> str:
        return str(self.ask("POST", "/v1/faults", **fields)["id"])

    def fired(self, fault: str) -> int:
        return int(self.ask("GET", f"/v1/faults/{fault}")["fired"])

    def advance(self, distance_ms: int) -> None:
        self.ask("POST", "/v1/clock", advance_ms=distance_ms)

    def values(self, topic: str, isolation: str = "read_uncommitted") -> list[str]:
        records = self.ask("GET", f"/v1/records?topic={topic}&isolation={isolation}")["records"]
        return [record["value"] for record in records if not record["control"]]

    def members(self, group: str) -> int:
        groups = {one["group"] for one in self.ask("GET", "/v1/groups")["groups"]}
        return len(self.ask("GET", f"/v1/groups/{group}")["members"]) if group in groups else 0


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odradek]:
    broker = Odradek(tmp_path_factory.mktemp("control") / "data", OPTIONS)
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


@pytest.fixture
def control(started: Odradek) -> Iterator[Control]:
    control = Control(started)
    yield control
    control.ask("DELETE", "/v1/faults")


def producer(control: Control, **options: object) -> Producer:
    names = {name.replace("_", "."): value for name, value in options.items()}
    return Producer({"bootstrap.servers": control.bootstrap, "linger.ms": 0, **names})


def consumer(control: Control, group: str, topic: str) -> Consumer:
    made = Consumer(
        {
            "bootstrap.servers": control.bootstrap, "group.id": group, "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000, "heartbeat.interval.ms": 100,
        }
    )  # fmt: skip
    made.subscribe([topic])
    return made


def consumed(client: Consumer, count: int) -> list[bytes]:
    values: list[bytes] = []

    def has_all() -> bool:
        message = client.poll(0.1)
        if message is not None and message.error() is None:
            values.append(message.value() or b"")
        return len(values) >= count

    wait_until(has_all)
    return values


def test_an_idempotent_producer_whose_answer_is_lost_writes_once(control: Control, topic: str) -> None:
    control.ask("POST", "/v1/topics", topic=topic)
    fault = control.fault(api="Produce", topic=topic, disconnect=True, when="after", times=1)
    client = producer(control, enable_idempotence=True)
    client.produce(topic, b"once")
    assert client.flush(WITHIN_S) == 0
    assert (control.values(topic), control.fired(fault)) == (["once"], 1)


def test_a_producer_goes_on_after_errors_that_may_pass(control: Control, topic: str) -> None:
    control.ask("POST", "/v1/topics", topic=topic)
    fault = control.fault(api="Produce", topic=topic, error="NOT_ENOUGH_REPLICAS", times=2)
    client = producer(control, retry_backoff_ms=10)
    client.produce(topic, b"in the end")
    assert client.flush(WITHIN_S) == 0
    assert (control.values(topic), control.fired(fault)) == (["in the end"], 2)


def test_a_producer_is_told_of_an_error_that_stays(control: Control, topic: str) -> None:
    control.ask("POST", "/v1/topics", topic=topic)
    control.fault(api="Produce", topic=topic, error="TOPIC_AUTHORIZATION_FAILED")
    errors: list[KafkaError | None] = []
    client = producer(control)
    client.produce(topic, b"never", on_delivery=lambda error, message: errors.append(error))
    client.flush(WITHIN_S)
    assert [error.code() for error in errors if error is not None] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    assert control.values(topic) == []


def test_a_consumer_goes_on_after_half_an_answer_and_a_partition_without_leader(control: Control, topic: str) -> None:
    control.ask("POST", "/v1/topics", topic=topic)
    client = producer(control)
    client.produce(topic, b"first")
    client.flush(WITHIN_S)
    fault = control.fault(api="Fetch", topic=topic, half_answer=True, times=1)
    reader = consumer(control, f"g-{topic}", topic)
    assert consumed(reader, 1) == [b"first"]
    assert control.fired(fault) == 1
    leaderless = control.fault(topic=topic, partition=0, no_leader=True)
    client.produce(topic, b"second")
    control.ask("DELETE", f"/v1/faults/{leaderless}")
    assert client.flush(WITHIN_S) == 0
    assert consumed(reader, 1) == [b"second"]
    reader.close()


def test_a_consumer_joins_again_once_its_session_has_ended(control: Control, topic: str) -> None:
    control.ask("POST", "/v1/topics", topic=topic)
    group = f"g-{topic}"
    reader, writer = consumer(control, group, topic), producer(control)
    writer.produce(topic, b"before")
    assert consumed(reader, 1) == [b"before"]
    reader.commit(asynchronous=False)
    (before,) = control.ask("GET", f"/v1/groups/{group}")["members"]
    control.advance(3_600_000)
    writer.produce(topic, b"after")
    assert consumed(reader, 1) == [b"after"]  # by a fetch of before, it may be

    def is_back() -> bool:
        reader.poll(0.1)
        members = control.ask("GET", f"/v1/groups/{group}")["members"]
        return [before["member_id"]] != [member["member_id"] for member in members] != []

    wait_until(is_back)
    reader.close()


def test_a_week_of_retention_passes(control: Control, topic: str) -> None:
    configs = {"retention.ms": WEEK_MS, "message.timestamp.type": "LogAppendTime"}
    control.ask("POST", "/v1/topics", topic=topic, configs=configs)
    client = producer(control)
    client.produce(topic, b"old")
    assert client.flush(WITHIN_S) == 0
    control.advance(WEEK_MS - 3_600_000)
    assert control.values(topic) == ["old"]
    control.advance(2 * 3_600_000)
    assert control.values(topic) == []
    client.produce(topic, b"new")
    assert client.flush(WITHIN_S) == 0
    reader = consumer(control, f"g-{topic}", topic)
    assert consumed(reader, 1) == [b"new"]
    reader.close()


def test_a_transaction_that_takes_too_long_is_aborted(control: Control, topic: str) -> None:
    control.ask("POST", "/v1/topics", topic=topic)
    client = producer(control, transactional_id=f"t-{topic}", transaction_timeout_ms=60_000)
    client.init_transactions(WITHIN_S)
    client.begin_transaction()
    client.produce(topic, b"forgotten")
    client.flush(WITHIN_S)
    control.advance(120_000)
    wait_until(lambda: control.ask("GET", f"/v1/records?topic={topic}")["partitions"][0]["last_stable_offset"] == 2)
    assert control.values(topic, "read_committed") == []
    with pytest.raises(KafkaException):
        client.commit_transaction(WITHIN_S)


def test_kafka_python_takes_the_broker_for_the_release_that_it_pretends_to_be(control: Control, topic: str) -> None:
    control.ask("POST", "/v1/topics", topic=topic)
    fault = control.fault(release="2.1")
    writer = KafkaProducer(bootstrap_servers=control.bootstrap)
    writer.send(topic, b"as of old").get(WITHIN_S)
    reader = KafkaConsumer(topic, bootstrap_servers=control.bootstrap, auto_offset_reset="earliest")
    assert next(reader).value == b"as of old"
    assert reader.config["api_version"] == (2, 1)
    reader.close()
    writer.close()
    assert control.fired(fault) > 0


def test_a_broker_stops_while_answers_hang_and_others_have_no_control(tmp_path: Path) -> None:
    broker = Odradek(tmp_path / "data", OPTIONS)
    broker.start()
    control = Control(broker)
    control.fault(api="Metadata", drop=True)
    client = producer(control)
    client.produce("t", b"never")
    wait_until(lambda: control.fired("1") > 0)
    assert broker.stop() == 0
    plain = Odradek(tmp_path / "plain")
    plain.start()
    assert not re.search(r"^control ", plain.log.read_text(), re.MULTILINE)
    plain.stop()
    for one in (broker, plain):
        one.forget()
