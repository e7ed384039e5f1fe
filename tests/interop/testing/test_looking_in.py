"""Tests that a test can inspect its broker (records, groups, lag, requests), inject faults, and advance the time."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from odradek.testing import AsyncBroker, Broker, BrokerError, ControlError, WaitTimeout
from odradek.testing.fixtures import broker_fixture
from tests.waiting import eventually

pytestmark = pytest.mark.odradek_only
SOON_S = 30
broker = broker_fixture(scope="module")
travelling = broker_fixture()
_numbers = itertools.count()


@pytest.fixture
def topic(broker: Broker) -> str:
    """Returns a topic of the test's own, on the module's broker."""
    return broker.create_topic(f"topic-{next(_numbers)}", partitions=2)


@pytest.fixture
def recording(broker: Broker) -> Iterator[None]:
    broker.record_requests()
    yield
    broker.control.post("/v1/requests/recording", {"enabled": False})


def producer(broker: Broker, **settings: str | int | bool) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, **settings})


def consumer(broker: Broker, topic: str, group: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    return consumer


class Polling:
    """Polls consumers in a thread, as the program under test would."""

    def __init__(self, *consumers: Consumer) -> None:
        self._consumers = consumers
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def _poll(self) -> None:
        while not self._over.is_set():
            for consumer in self._consumers:
                if (message := consumer.poll(0.05)) is not None and message.error() is None:
                    consumer.commit(message=message, asynchronous=False)

    def __enter__(self) -> Polling:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for consumer in self._consumers:
            consumer.close()


def test_records_are_seen_with_all_that_clients_gave_them(broker: Broker, topic: str) -> None:
    writer = producer(broker, **{"enable.idempotence": True})
    writer.produce(
        topic, b"\xff\0", b"key", partition=1, timestamp=1_700_000_000_000, headers=[("trace", b"1"), ("e", b"")]
    )
    writer.produce(topic, None, b"gone", partition=1)
    assert writer.flush(SOON_S) == 0
    first, second = broker.records(topic)
    assert (first.topic, first.partition, first.offset, first.timestamp_ms) == (topic, 1, 0, 1_700_000_000_000)
    assert (first.key, first.value, first.headers) == (b"key", b"\xff\0", (("trace", b"1"), ("e", b"")))
    assert (second.value, second.offset, second.sequence, second.producer_id) == (None, 1, 1, first.producer_id)
    assert broker.records(topic, partition=0) == []
    assert broker.records(topic, partition=1, offset=1) == [second]


def test_an_aborted_transaction_is_seen_by_who_wants_to(broker: Broker, topic: str) -> None:
    writer = producer(broker, **{"transactional.id": "t"})
    writer.init_transactions(SOON_S)
    writer.begin_transaction()
    writer.produce(topic, "aborted", partition=0)
    writer.flush(SOON_S)
    writer.abort_transaction(SOON_S)
    assert [record.value for record in broker.records(topic)] == [b"aborted"]
    assert broker.records(topic, isolation="read_committed") == []
    # The marker follows the answer.
    eventually(lambda: [one.is_control for one in broker.records(topic, control_records=True)], [False, True])


def test_a_group_is_waited_for_and_its_lag(broker: Broker, topic: str) -> None:
    writer = producer(broker)
    for number in range(10):
        writer.produce(topic, str(number), partition=number % 2)
    assert writer.flush(SOON_S) == 0
    group = f"{topic}-group"
    assert broker.group(group) is None
    assert broker.lag(group) is None
    with Polling(consumer(broker, topic, group), consumer(broker, topic, group)):
        joined = broker.wait_for_group(group, members=2)
        assert {partition for member in joined.members for partition in member.partitions} == {(topic, 0), (topic, 1)}
        broker.wait_for_lag(group, topic=topic)
    assert broker.wait_for_group(group, members=0, state="Empty").lag() == 0
    writer.produce(topic, "more", partition=0)
    assert writer.flush(SOON_S) == 0
    assert broker.lag(group, topic) == 1
    assert group in broker.groups()


def test_who_waits_in_vain_is_told_what_was_there(broker: Broker) -> None:
    with pytest.raises(WaitTimeout, match="nobody to have 1 members, state Stable; it is None"):
        broker.wait_for_group("nobody", members=1, timeout_s=0.05)
    with pytest.raises(WaitTimeout, match="nobody to lag by 0; None"):
        broker.wait_for_lag("nobody", timeout_s=0.05)


def test_requests_are_recorded_when_asked_for(broker: Broker, topic: str, recording: None) -> None:
    settings: dict[str, Any] = {"client.id": "billing", "acks": 1}
    writer = producer(broker, **settings)
    writer.produce(topic, "one", partition=1)
    assert writer.flush(SOON_S) == 0
    (request,) = broker.requests(api="Produce", client_id="billing", bodies=True)
    assert request.partitions == ((topic, 1),)
    assert request.body is not None
    assert request.body["acks"] == 1
    assert broker.requests(client_id="nobody") == []


def test_requests_that_nobody_recorded_are_an_error(broker: Broker) -> None:
    with pytest.raises(BrokerError, match="record_requests"):
        broker.requests()


def test_a_fault_tells_how_often_it_fired_and_is_gone_with_its_block(broker: Broker, topic: str) -> None:
    with broker.fault(api=["Produce"], topic=topic, error="NOT_LEADER_OR_FOLLOWER", times=2) as fault:
        writer = producer(broker, **{"retry.backoff.ms": 10})
        writer.produce(topic, "one", partition=0)
        assert writer.flush(SOON_S) == 0
        assert fault.fired == 2
    assert fault.fired == 2
    assert broker.control.get("/v1/faults") == {"faults": []}
    assert [record.value for record in broker.records(topic)] == [b"one"]


def test_a_fault_that_nobody_holds_stays_until_faults_are_cleared(broker: Broker, topic: str) -> None:
    broker.fault(api="Produce", topic=topic, error="TOPIC_AUTHORIZATION_FAILED")
    outcome: list[KafkaError | None] = []
    for _ in range(2):
        writer = producer(broker)
        writer.produce(topic, "one", on_delivery=lambda error, _: outcome.append(error))
        assert writer.flush(SOON_S) == 0
        broker.clear_faults()
    refused, accepted = outcome
    assert refused is not None
    assert refused.name() == "TOPIC_AUTHORIZATION_FAILED"
    assert accepted is None


def test_a_fault_that_makes_no_sense_is_refused_with_a_reason(broker: Broker) -> None:
    with pytest.raises(ControlError, match="Produse") as refused:
        broker.fault(api="Produse", error="UNKNOWN_SERVER_ERROR")
    assert refused.value.status == 400


@pytest.mark.examples
def test_a_fault_outlasts_no_kill(travelling: Broker) -> None:
    with travelling.fault(api="Metadata", error="UNKNOWN_SERVER_ERROR") as fault:
        travelling.kill()
        assert fault.fired == 0
        travelling.restart()
        assert travelling.control.get("/v1/faults") == {"faults": []}
    assert fault.fired == 0


def test_a_week_passes(travelling: Broker) -> None:
    travelling.create_topic("week", configs={"retention.ms": str(7 * 86_400_000)})
    writer = producer(travelling)
    writer.produce("week", "old")
    assert writer.flush(SOON_S) == 0
    before = travelling.clock.now_ms
    travelling.clock.advance(days=6)
    assert len(travelling.records("week")) == 1
    travelling.clock.advance(days=1, hours=1)
    assert travelling.records("week") == []
    assert travelling.clock.travelled_ms == (7 * 24 + 1) * 3_600_000
    assert travelling.clock.now_ms >= before + travelling.clock.travelled_ms


def test_compaction_and_retention_happen_when_asked_for(broker: Broker) -> None:
    broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
    broker.create_topic("short", configs={"retention.ms": "1000"})
    writer = producer(broker)
    for number in range(3):
        writer.produce("compacted", str(number), "key")
        writer.produce("short", str(number), timestamp=1_700_000_000_000)
        assert writer.flush(SOON_S) == 0
    broker.compact("compacted")
    assert [record.value for record in broker.records("compacted")] == [b"2"]
    broker.apply_retention("short")
    assert broker.records("short") == []
    broker.flush()


def test_a_topic_that_is_not_there_is_told_as_such(broker: Broker) -> None:
    with pytest.raises(BrokerError, match="no topic nowhere"):
        broker.partitions("nowhere")
    with pytest.raises(ControlError, match="nowhere") as refused:
        broker.records("nowhere")
    assert refused.value.status == 404


async def test_coroutines_leave_the_loop_to_the_clients(broker: Broker, topic: str) -> None:
    served: AsyncBroker = broker.aio
    async with AIOKafkaProducer(bootstrap_servers=served.bootstrap) as writer:
        await writer.send_and_wait(topic, b"one", partition=0)
    reader = AIOKafkaConsumer(
        topic, bootstrap_servers=served.bootstrap, group_id=f"{topic}-group", auto_offset_reset="earliest"
    )
    async with reader:
        await served.wait_for_group(f"{topic}-group", members=1)
        assert (await reader.getone()).value == b"one"
        await reader.commit()
        await served.wait_for_lag(f"{topic}-group")
        async with served.fault(api="Fetch", topic=topic, error="NOT_LEADER_OR_FOLLOWER", times=1) as fault:
            async with AIOKafkaProducer(bootstrap_servers=served.bootstrap) as writer:
                await writer.send_and_wait(topic, b"two", partition=0)
            assert (await reader.getone()).value == b"two"
            while not await asyncio.to_thread(lambda: fault.fired):  # noqa: ASYNC110 (a parked fetch may get "two")
                await asyncio.sleep(0.01)
        assert fault.fired == 1


def test_an_error_of_a_client_is_the_clients(broker: Broker) -> None:
    with broker.fault(api="Metadata", disconnect=True), pytest.raises(KafkaException):
        Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"}).list_topics(timeout=0.3)
