"""A producer far beyond its quota, against Odradek and Apache Kafka: both let as much through."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from protocol.messages.produce import ProduceResponse
from tests.broker.asking import batch, produce_request
from tests.coordinator.cluster.given import creatable
from tests.interop.brokers import ApacheKafka, Odradek
from tests.interop.test_admin_answers import creating
from tests.interop.test_security_answers import limiting, quota
from tests.interop.wire import WireClient

pytestmark = [pytest.mark.odradek_only, pytest.mark.security]

LIMIT = 1_000_000
"""Bytes a second: a client alone would move a hundred times as much."""

SECONDS = 30
RECORDS = batch(b"x" * 50_000)
TOPIC = "limited"


def moved(broker: ApacheKafka | Odradek, move: Callable[[WireClient], int]) -> int:
    """Returns how many bytes a client moves that does nothing else for SECONDS."""
    client = WireClient(broker.bootstrap, timeout_s=SECONDS)
    end, total = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        total += move(client)
    client.close()
    return total


def produced(client: WireClient) -> int:
    client.ask(produce_request(TOPIC, (0, RECORDS), acks=1), ProduceResponse, 12)
    return len(RECORDS)


def measured(broker: ApacheKafka | Odradek) -> int:
    broker.start()
    try:
        admin = WireClient(broker.bootstrap, timeout_s=30)
        for step in (
            creating("a topic", creatable(TOPIC, 1, 1)),
            limiting("its quota", quota({"client-id": "me"}, ("producer_byte_rate", LIMIT))),
        ):
            admin.ask(step.request, step.response, step.version)
        return moved(broker, produced)
    finally:
        broker.stop()
        broker.forget()


def test_as_much_is_let_through_as_by_kafka(tmp_path: Path) -> None:
    theirs = measured(ApacheKafka(tmp_path / "theirs"))
    ours = measured(Odradek(tmp_path / "ours", {"odradek.profile": "production"}))
    print(f"bytes produced in {SECONDS} s: Apache Kafka {theirs}, Odradek {ours}")
    assert ours == pytest.approx(theirs, rel=0.05)
