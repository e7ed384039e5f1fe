"""Tests dead letters and redelivery backoff of share groups with the Java client."""

from __future__ import annotations

import re
import time

import pytest

from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.sharing import EXPLICIT, SHORT, Consumers, deliveries, offsets

pytestmark = pytest.mark.odradek_only


@pytest.fixture
def properties() -> dict[str, str]:
    return {**SHORT, "errors.deadletterqueue.auto.create.topics.enable": "true"}


def features(broker: Broker, *arguments: str) -> str:
    return jvm.tool("kafka-features", "--bootstrap-server", broker.bootstrap, *arguments)


def letters(consumers: Consumers, queue: str, count: int) -> dict[int, tuple[str, dict[str, str]]]:
    """Returns the queue's records, read by a share group: value and headers, by the offset of the undeliverable
    record."""
    consumers.configure("groups", queue, share_auto_offset_reset="earliest")
    consumers.open("letters", queue)
    received: dict[int, tuple[str, dict[str, str]]] = {}
    deadline = time.monotonic() + 30
    while len(received) < count and time.monotonic() < deadline:
        for line in consumers.client.ask("headers letters 300"):
            record, *pairs = line.split("\t")
            errors = dict(pair.removeprefix("__dlq.errors.").split("=", 1) for pair in pairs)
            received[int(errors["offset"])] = record.split(" ")[3], errors
    consumers.close("letters")
    return received


def test_what_is_given_up_goes_to_the_dead_letter_queue(consumers: Consumers, broker: Broker, topic: str) -> None:
    assert "upgraded to 2" in features(broker, "upgrade", "--feature", "share.version=2")
    levels = r"share\.version\s+SupportedMinVersion: 0\s+SupportedMaxVersion: 2\s+FinalizedVersionLevel: 2"
    assert re.search(levels, features(broker, "describe"))
    queue = f"dlq.{topic}"
    consumers.create(
        broker, topic, share_delivery_count_limit="2", errors_deadletterqueue_topic_name=queue,
        errors_deadletterqueue_copy_record_enable="true",
    )  # fmt: skip
    consumers.produce(topic, 4)
    consumers.open("a", topic, EXPLICIT)
    assert offsets(consumers.poll("a", 4)) == [0, 1, 2, 3]
    consumers.acknowledge("a", "ACCEPT", 0)
    consumers.acknowledge("a", "REJECT", 1)
    consumers.acknowledge("a", "RELEASE", 2, 3)
    assert consumers.commit("a") == []
    again = consumers.poll("a", 2)
    assert deliveries(again) == [(2, 2), (3, 2)]
    consumers.acknowledge("a", "RELEASE", 2)
    assert consumers.commit("a") == []  # the lock of record 3 runs out
    received = letters(consumers, queue, 3)
    assert {offset: value for offset, (value, _) in received.items()} == {1: "value-1", 2: "value-2", 3: "value-3"}
    reasons = {offset: errors["message"] for offset, (_, errors) in received.items()}
    exhausted = "Offset delivery count exceeded the threshold."
    assert reasons == {1: "Offset rejected by client.", 2: exhausted, 3: exhausted}
    assert {errors["delivery.count"] for offset, (_, errors) in received.items() if offset > 1} == {"2"}
    assert {(errors["topic"], errors["partition"], errors["group"]) for _, errors in received.values()} == {
        (topic, "0", topic)
    }
    consumers.close("a")


def test_what_was_released_is_offered_again_after_its_pause(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic, odradek_share_redelivery_backoff_ms="1000", share_delivery_count_limit="5")
    consumers.produce(topic, 1)
    consumers.open("a", topic, EXPLICIT)
    waits = []
    before = None
    for delivery in (1, 2, 3):
        (record,) = consumers.poll("a", 1)
        assert record.delivery == delivery
        if before is not None:
            waits.append(time.monotonic() - before)
        before = time.monotonic()
        consumers.acknowledge("a", "RELEASE" if delivery < 3 else "ACCEPT", 0)
        assert consumers.commit("a") == []
    first, second = waits
    assert first >= 0.9
    assert second >= 1.9
    consumers.close("a")
