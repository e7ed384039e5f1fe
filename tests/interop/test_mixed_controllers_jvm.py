"""Tests quorums with voters of Odradek and of Apache Kafka: leaders of either kind, and equal logs afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from coordinator.cluster.record import decode_batches
from tests.interop.either_node import Make
from tests.interop.several_controllers import DIRECTORIES, SeveralControllers, lags, leader_of
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

SOON_S = 90

LOG = "__cluster_metadata-0/00000000000000000000.log"


def create(bootstrap: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(name, 1, 1)]
    admin.create_topics(new, operation_timeout=SOON_S, request_timeout=SOON_S)[name].result(SOON_S)


def batches(data: Path) -> list[tuple[int, int, object, object]]:
    """Returns the offset, epoch and records of each batch."""
    decoded = decode_batches(memoryview((data / LOG).read_bytes()))
    return [(batch.base_offset, batch.epoch, list(batch.records), list(batch.quorum)) for batch in decoded]


@pytest.mark.parametrize(
    "makes",
    [(Make.ODRADEK, Make.APACHE, Make.APACHE), (Make.ODRADEK, Make.ODRADEK, Make.APACHE)],
    ids=["one of Odradek", "two of Odradek"],
)
def test_each_voter_leads_once_and_all_logs_are_equal(tmp_path: Path, makes: tuple[Make, ...]) -> None:
    quorum = SeveralControllers(tmp_path, makes)
    broker = quorum.broker(1)
    led: set[Make] = set()
    try:
        quorum.start()
        broker.start()
        for number in range(20):
            leader_id = leader_of(broker.bootstrap)
            led.add(quorum.nodes[leader_id].make)
            create(broker.bootstrap, f"before-{number}")
            quorum.nodes[leader_id].kill9()
            create(broker.bootstrap, f"after-{number}")
            quorum.nodes[leader_id].start()
            eventually(lambda: set(lags(broker.bootstrap)), set(DIRECTORIES), within_s=SOON_S)
            if number and led == {Make.ODRADEK, Make.APACHE}:
                break
        assert led == {Make.ODRADEK, Make.APACHE}
    finally:
        broker.stop()
        broker.forget()
        quorum.stop()
    first, second, third = (batches(node.data) for node in quorum.nodes.values())
    common = min(map(len, (first, second, third)))
    assert common > 20
    assert first[: common - 2] == second[: common - 2] == third[: common - 2], "what is committed is the same"
