"""Compares clients far beyond their quotas on Odradek and Apache Kafka: both let the same amount through, and reject
the same requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.fetch import FetchResponse
from protocol.messages.produce import ProduceResponse
from tests.broker.asking import batch, fetch_request, produce_request
from tests.coordinator.cluster.given import creatable
from tests.interop.brokers import ApacheKafka, Odradek
from tests.interop.test_admin_answers import creating
from tests.interop.test_security_answers import limiting, quota
from tests.wire import WireClient

pytestmark = [pytest.mark.odradek_only, pytest.mark.security]

LIMIT = 1_000_000
"""Bytes per second; an unlimited client would move a hundred times as much."""

MUTATIONS = 2
"""Partitions per second; a bucket has room for eleven seconds of them."""

SECONDS = 30
RECORDS = batch(b"x" * 50_000)
TOPIC = "limited"
MADE = 100
"""Number of partitions of the first topic, which overdraws the bucket by 78: 39 seconds."""


class Change(NamedTuple):
    """The answer to a change of the cluster: the topic's error, and the throttle time."""

    error_code: int
    throttle_ms: int


class Measured(NamedTuple):
    """The bytes and changes that a broker let through."""

    produced: int
    consumed: int
    changes: list[Change]


def moved(broker: ApacheKafka | Odradek, move: Callable[[WireClient], int]) -> int:
    """Returns the number of bytes that a client moves within SECONDS."""
    client = WireClient(broker.bootstrap, timeout_s=SECONDS)
    end, total = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        total += move(client)
    client.close()
    return total


def produced(client: WireClient) -> int:
    client.ask(produce_request(TOPIC, (0, RECORDS), acks=1), ProduceResponse, 12)
    return len(RECORDS)


def consumed(client: WireClient) -> int:
    """Consumes a batch; none if the client is beyond its quota."""
    answer = client.ask(fetch_request(TOPIC, max_bytes=1), FetchResponse, 12)
    return sum(len(one.records or b"") for topic in answer.responses for one in topic.partitions)


def changes(broker: ApacheKafka | Odradek) -> list[Change]:
    """Returns the answers to changes of the cluster, in the last version that is only throttled, and in the first that
    is rejected. Each has its own connection, because the previous connection is muted."""
    answers: list[Change] = []

    def ask(request: object, response: type, version: int, results: str) -> None:
        client = WireClient(broker.bootstrap, timeout_s=30)
        answer: Any = client.ask(request, response, version)
        client.close()
        (result,) = getattr(answer, results)
        answers.append(Change(result.error_code, answer.throttle_time_ms))

    def create(name: str, partitions: int, version: int) -> None:
        request = CreateTopicsRequest(topics=[creatable(name, partitions, 1)], timeout_ms=30_000)
        ask(request, CreateTopicsResponse, version, "topics")

    def grow(count: int, version: int) -> None:
        more = CreatePartitionsTopic(name="late", count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[more], timeout_ms=30_000, validate_only=False)
        ask(request, CreatePartitionsResponse, version, "results")

    def delete(version: int) -> None:
        request = DeleteTopicsRequest(topic_names=["late"], timeout_ms=30_000)
        ask(request, DeleteTopicsResponse, version, "responses")

    create("large", MADE, 7)
    create("refused", 1, 6)
    create("late", 1, 5)
    grow(3, 3)
    grow(3, 2)
    delete(5)
    delete(4)
    create("refused", 1, 7)
    return answers


def measured(broker: ApacheKafka | Odradek) -> Measured:
    broker.start()
    try:
        admin = WireClient(broker.bootstrap, timeout_s=30)
        limits = ("producer_byte_rate", LIMIT), ("consumer_byte_rate", LIMIT), ("controller_mutation_rate", MUTATIONS)
        for step in (
            creating("a topic", creatable(TOPIC, 1, 1, {"retention.ms": "-1"})),  # its records are years old
            limiting("its quotas", quota({"client-id": "me"}, *limits)),
        ):
            admin.ask(step.request, step.response, step.version)
        return Measured(moved(broker, produced), moved(broker, consumed), changes(broker))
    finally:
        broker.stop()
        broker.forget()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Measured, Measured]:
    """Returns the measurements of Apache Kafka, and of Odradek."""
    folder = tmp_path_factory.mktemp("quotas")
    theirs = measured(ApacheKafka(folder / "theirs"))
    ours = measured(Odradek(folder / "ours", {"odradek.profile": "production"}))
    print(f"Apache Kafka: {theirs}\nOdradek: {ours}")
    return theirs, ours


def test_as_much_may_be_produced_as_to_kafka(both: tuple[Measured, Measured]) -> None:
    theirs, ours = both
    assert ours.produced == pytest.approx(theirs.produced, rel=0.05)


def test_as_much_may_be_consumed_as_from_kafka(both: tuple[Measured, Measured]) -> None:
    theirs, ours = both
    assert ours.consumed == pytest.approx(theirs.consumed, rel=0.05)


def test_the_same_changes_of_the_cluster_are_refused(both: tuple[Measured, Measured]) -> None:
    theirs, ours = both
    assert [one.error_code for one in ours.changes] == [one.error_code for one in theirs.changes]
    for own, kafka_s in zip(ours.changes, theirs.changes, strict=True):
        assert own.throttle_ms == pytest.approx(kafka_s.throttle_ms, abs=5_000)
        assert bool(own.throttle_ms) is bool(kafka_s.throttle_ms)
