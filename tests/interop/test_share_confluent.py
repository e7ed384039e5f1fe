"""Tests share groups with librdkafka's share consumer."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer

from tests.interop.brokers import Broker
from tests.interop.sharing import SHORT, Consumers


@pytest.fixture
def properties() -> dict[str, str]:
    return SHORT


def poll(consumer: Any, count: int, timeout_s: float = 20) -> list[Any]:
    messages: list[Any] = []
    deadline = time.monotonic() + timeout_s
    while len(messages) < count and time.monotonic() < deadline:
        for message in consumer.poll(0.3):
            assert message.error() is None, message.error()
            messages.append(message)
    return messages


def test_records_are_shared_accepted_released_and_rejected(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic, share_record_lock_duration_ms="30000")
    consumers.produce(topic, 6)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic}
    consumer = ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"})
    consumer.subscribe([topic])
    messages = poll(consumer, 6)
    assert [message.value() for message in messages] == [f"value-{number}".encode() for number in range(6)]
    kinds = [AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT] * 2
    for message, kind in zip(messages, kinds, strict=True):
        consumer.acknowledge(message, kind)
    assert all(error is None for error in consumer.commit_sync(10).values())
    again = poll(consumer, 2)
    assert sorted(message.offset() for message in again) == [1, 4]
    for message in again:
        consumer.acknowledge(message)
    assert all(error is None for error in consumer.commit_sync(10).values())
    consumer.close()
    implicit = ShareConsumer(settings)
    implicit.subscribe([topic])
    assert poll(implicit, 1, timeout_s=2) == []
    consumers.produce(topic, 3)
    assert len(poll(implicit, 3)) == 3
    implicit.close()
