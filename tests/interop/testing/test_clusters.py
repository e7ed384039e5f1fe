"""Tests clusters of several brokers in one test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from odradek.testing import BrokerError, Cluster
from odradek.testing.fixtures import cluster_fixture

pytestmark = [pytest.mark.odradek_only, pytest.mark.examples]
SOON_S = 60

three = cluster_fixture(3, scope="module")


@pytest.fixture
def cluster(three: Cluster) -> Iterator[Cluster]:
    yield three
    three.recover()


def write(cluster: Cluster, topic: str, value: str) -> None:
    writer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    writer.produce(topic, value, partition=0)
    assert writer.flush(SOON_S) == 0


def test_records_outlive_the_leader_of_their_partition(cluster: Cluster) -> None:
    cluster.create_topic("outliving", partitions=3)
    cluster.wait_for_isr("outliving")
    write(cluster, "outliving", "before")
    partition = next(one for one in range(3) if cluster.leader("outliving", one) != 1)
    cluster.leader_of("outliving", partition).kill()
    write(cluster, "outliving", "after")
    assert [record.value for record in cluster.records("outliving", partition=0)] == [b"before", b"after"]
    cluster.recover()
    cluster.wait_for_isr("outliving", timeout_s=SOON_S)


def test_a_fault_is_that_of_every_broker(cluster: Cluster) -> None:
    cluster.create_topic("failing")
    with cluster.fault(api="Produce", topic="failing", error="NOT_ENOUGH_REPLICAS", times=1) as fault:
        write(cluster, "failing", "one")
        assert fault.fired == 1
    with cluster.fault(topic="failing", partition=0, no_leader=True):
        assert cluster.leader("failing") == -1
        with pytest.raises(BrokerError, match="no broker -1"):
            cluster.leader_of("failing")
    write(cluster, "failing", "two")
    assert len(cluster.records("failing")) == 2


@pytest.mark.ci
def test_a_leader_is_moved_and_comes_back(cluster: Cluster) -> None:
    cluster.create_topic("moving")
    cluster.wait_for_isr("moving")
    write(cluster, "moving", "before")
    first = cluster.leader("moving")
    other = next(broker for broker in (1, 2, 3) if broker != first)
    with cluster.fault(topic="moving", partition=0, move_leader=other) as fault:
        assert (cluster.leader("moving"), fault.fired) == (other, 1)
        write(cluster, "moving", "meanwhile")
    assert cluster.leader("moving") == first
    write(cluster, "moving", "after")
    records = cluster.records("moving")
    assert [record.value for record in records] == [b"before", b"meanwhile", b"after"]
    assert [record.leader_epoch for record in records] == [0, 1, 2]
    with pytest.raises(BrokerError, match="broker 7 is not in the ISR"):
        cluster.fault(topic="moving", partition=0, move_leader=7)


async def test_a_cluster_has_coroutines(cluster: Cluster) -> None:
    view = cluster.aio
    await view.create_topic("awaited")
    await view.wait_for_isr("awaited")
    leader = await view.leader_of("awaited")
    assert leader.sync in cluster.brokers
    assert [broker.bootstrap for broker in view.brokers] == cluster.bootstrap.split(",")
    await view.broker(3).kill()
    await view.recover()
    await view.wait_for_isr("awaited", timeout_s=SOON_S)


def test_a_group_is_found_at_its_coordinator(cluster: Cluster) -> None:
    cluster.create_topic("grouped")
    write(cluster, "grouped", "one")
    reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    reader.subscribe(["grouped"])
    message = reader.poll(SOON_S)
    assert message is not None
    assert message.error() is None
    reader.commit(message=message, asynchronous=False)
    assert cluster.wait_for_group("g", members=1).members[0].partitions == (("grouped", 0),)
    cluster.wait_for_lag("g", topic="grouped")
    assert cluster.coordinator_of("g") in cluster.brokers
    reader.close()


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(BrokerError, match="not started"):
        Cluster(1).bootstrap  # noqa: B018
    with pytest.raises(BrokerError, match="there is no broker 4"):
        Cluster(3).broker(4)
