"""Tests Apache Kafka's own verifiable tools in a mixed cluster whose nodes are killed: all acknowledged records are
read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.either_node import Make
from tests.interop.faults import Faults, summary
from tests.interop.mixture import Cluster
from tests.interop.verifiable import VerifiableConsumer, VerifiableProducer
from tests.waiting import eventually

TOPIC = "verified"
THREE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
MIXED = (Make.ODRADEK, Make.ODRADEK, Make.APACHE)
FAULTS = 6


@pytest.fixture(params=[*Make], ids=lambda make: f"under-{make.value}")
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, MIXED, request.param)
    cluster.start()
    yield cluster
    cluster.forget()


@pytest.mark.cluster
@pytest.mark.timeout(1800)
def test_the_verifiable_consumer_reads_all_that_the_producer_was_acknowledged(
    cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.create(TOPIC, THREE)
    producer = VerifiableProducer(cluster.bootstrap, TOPIC, tmp_path)
    consumer = VerifiableConsumer(cluster.bootstrap, TOPIC, tmp_path, "consumer")
    clients = (producer, consumer)
    try:
        for client in clients:
            client.start()
        faults = Faults(cluster, TOPIC, int(request.config.getoption("--cluster-seed")))
        while faults.kills < FAULTS:
            faults.strike()
        cluster.all_in_sync(TOPIC, THREE)
        producer.end()
        acknowledged = producer.acknowledged()
        eventually(lambda: acknowledged.items() - consumer.consumed().items(), set())
        consumer.end()
    finally:
        for client in clients:
            client.forget()
    assert acknowledged
    assert not producer.failures()
    cluster.assert_replicated(TOPIC, THREE)
    with capsys.disabled():
        print(f"\n{cluster.nodes}: {len(acknowledged)} records acknowledged and read\n{summary(faults.counts)}")
