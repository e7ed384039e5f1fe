"""Tests a running streams group whose coordinator moves between Odradek and Apache Kafka: each continues with the
records that the other has written to __consumer_offsets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import jvm
from tests.interop.either_node import Make
from tests.interop.mixture import CALM, SOON_S, Cluster
from tests.interop.word_counts import APPLICATION, TOPICS, WordCounts, start_streams, streams_groups
from tests.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

OFFSETS = "__consumer_offsets"
ODRADEK, APACHE = 1, 2
INSTANCES = ("one", "two")
SETTINGS = {
    **CALM,
    "default__replication__factor": "2",
    "offsets__topic__replication__factor": "2",
    "transaction__state__log__replication__factor": "2",
    "transaction__state__log__min__isr": "1",
    "group__streams__initial__rebalance__delay__ms": "500",
    "group__streams__min__heartbeat__interval__ms": "500",
    "group__streams__heartbeat__interval__ms": "500",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, [Make.ODRADEK, Make.APACHE], **SETTINGS)
    cluster.start()
    yield cluster
    cluster.forget()


@pytest.fixture
def application(cluster: Cluster, tmp_path: Path) -> Iterator[WordCounts]:
    for topic in TOPICS:
        cluster.create(topic, [[ODRADEK, APACHE], [APACHE, ODRADEK]], min__insync__replicas="1")
    streams = start_streams(tmp_path)
    yield WordCounts(cluster.bootstrap, streams, tmp_path / "state", SOON_S)
    streams.close()


def lead(cluster: Cluster, broker: int) -> None:
    """Moves the coordinator to a broker, as an operator does."""
    plan = cluster.folder / "plan.json"
    replicas = [broker, ODRADEK + APACHE - broker]
    moves = {"version": 1, "partitions": [{"topic": OFFSETS, "partition": 0, "replicas": replicas}]}
    plan.write_text(json.dumps(moves))
    where = ("--bootstrap-server", cluster.bootstrap)
    jvm.tool("kafka-reassign-partitions", *where, "--reassignment-json-file", str(plan), "--execute")
    eventually(lambda: cluster.in_sync(OFFSETS), [{ODRADEK, APACHE}])
    if cluster.leaders(OFFSETS) != [broker]:
        which = ("--election-type", "preferred", "--topic", OFFSETS, "--partition", "0")
        jvm.tool("kafka-leader-election", *where, *which)
    eventually(lambda: cluster.leaders(OFFSETS), [broker])


def state(cluster: Cluster) -> list[str]:
    """Returns the group's state, its epochs and its number of members, and each member with its epochs and tasks."""
    which = ("--describe", "--group", APPLICATION, "--verbose")
    (row,) = re.findall(
        rf"^{APPLICATION}\s+\S+\s+\(\d+\)(.*)", streams_groups(cluster.bootstrap, *which, "--state"), re.M
    )
    members = streams_groups(cluster.bootstrap, *which, "--members")
    return [" ".join(line.split()) for line in (row, *sorted(members.splitlines()))]


def test_the_other_broker_continues_the_group_where_the_coordinator_was(
    cluster: Cluster, application: WordCounts
) -> None:
    application.open(*INSTANCES)
    application.write(50)
    application.wait_for(*INSTANCES)
    application.wait_for_counts()
    lead(cluster, ODRADEK)
    before, tasks = state(cluster), application.tasks(*INSTANCES)
    assert before[0].split()[0] == "Stable"
    for broker in (APACHE, ODRADEK, APACHE, ODRADEK):
        lead(cluster, broker)
        application.write(50)
        application.wait_for_counts()
        assert (state(cluster), application.tasks(*INSTANCES)) == (before, tasks)
    for broker, other in ((ODRADEK, APACHE), (APACHE, ODRADEK)):
        lead(cluster, broker)
        cluster.members[broker].kill9()
        eventually(lambda other=other: cluster.leaders(OFFSETS), [other])  # type: ignore[misc]
        application.write(50)
        application.wait_for_counts()
        assert (state(cluster), application.tasks(*INSTANCES)) == (before, tasks)
        cluster.members[broker].start()
        eventually(lambda: cluster.in_sync(OFFSETS), [{ODRADEK, APACHE}])
    cluster.assert_replicated(OFFSETS, [[ODRADEK, APACHE]])
