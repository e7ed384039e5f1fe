"""Tests long-term operations of a mixed cluster under load: a disk that fails and is replaced, and an upgrade of older
metadata."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.interop.either_node import Make
from tests.interop.jvm import NEWEST_METADATA, tool
from tests.interop.load import Load
from tests.interop.mixture import CALM, SOON_S, Cluster
from tests.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

TOPIC = "under-load"
FIRST = [[1, 2, 3]] * 6
"""Assignments that are all led by the broker with two disks."""
OURS, THEIRS = Make.ODRADEK, Make.APACHE
OLD, NEWER = "4.0-IV3", "4.3-IV0"


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[list[Cluster]]:
    """Yields a function that creates clusters, which end with the test."""
    clusters: list[Cluster] = []
    yield clusters
    for cluster in clusters:
        cluster.forget()


def fail(disk: Path) -> None:
    """Removes everything in a directory, and prevents new files in it."""
    shutil.rmtree(disk)
    disk.write_text("a disk that has failed")


@pytest.mark.parametrize(
    ("victim", "controller"),
    [(OURS, OURS), (OURS, THEIRS), (THEIRS, OURS)],
    ids=["o-under-o", "o-under-a", "a-under-o"],
)
def test_a_disk_fails_others_lead_and_it_is_replaced(
    clusters: list[Cluster], tmp_path: Path, victim: Make, controller: Make
) -> None:
    cluster = Cluster(tmp_path, [victim, OURS, OURS if victim is THEIRS else THEIRS], controller, disks=2, **CALM)
    clusters.append(cluster)
    cluster.start()
    broker = cluster.members[1]
    cluster.create(TOPIC, FIRST)
    disk = broker.folders[1]
    eventually(lambda: all(broker.replica(TOPIC, index).is_dir() for index in range(len(FIRST))), True)
    failing = [index for index in range(len(FIRST)) if broker.replica(TOPIC, index).parent == disk]
    assert 0 < len(failing) < len(FIRST)
    load = Load(cluster.bootstrap, TOPIC, len(FIRST))
    fail(disk)
    without = [{2, 3} if index in failing else {1, 2, 3} for index in range(len(FIRST))]
    eventually(lambda: cluster.in_sync(TOPIC), without)
    healthy = [index for index in range(len(FIRST)) if index not in failing]
    eventually(lambda: [index for index, leader in enumerate(cluster.leaders(TOPIC)) if leader == 1], healthy)
    assert broker.is_running
    broker.end()
    disk.unlink()
    broker.reformat()
    broker.start()
    cluster.all_in_sync(TOPIC, FIRST)
    load.finish()
    assert load.check()
    assert cluster.assert_alike(TOPIC, FIRST)


@pytest.mark.parametrize("controller", [*Make], ids=lambda make: f"under-{make.value}")
def test_metadata_of_an_older_release_is_upgraded_under_load(
    clusters: list[Cluster], tmp_path: Path, controller: Make
) -> None:
    cluster = Cluster(tmp_path, [OURS, OURS, THEIRS], controller, format_with=("--release-version", OLD), **CALM)
    clusters.append(cluster)
    cluster.start()
    three = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    cluster.create(TOPIC, three)
    cluster.create("transactions", three)
    load = Load(cluster.bootstrap, TOPIC, len(three))
    assert finalized(cluster) == OLD
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "over-the-upgrade"})
    producer.init_transactions(SOON_S)
    commit(producer, "before")
    upgrade(cluster, "--release-version", NEWER)
    eventually(lambda: finalized(cluster), NEWER)
    commit(producer, "between")
    upgrade(cluster, "--feature", "metadata.version=33")
    eventually(lambda: finalized(cluster), NEWEST_METADATA)
    commit(producer, "after")
    for member in cluster.members.values():
        member.kill9()
        member.start()
        cluster.all_in_sync(TOPIC, three)
    commit(producer, "after kills")
    load.finish()
    assert load.check()
    for topic in (TOPIC, "transactions"):
        cluster.assert_replicated(topic, three)


def upgrade(cluster: Cluster, *levels: str) -> None:
    words = ("--bootstrap-server", cluster.bootstrap, "upgrade", *levels)
    tool("kafka-features", *words, timeout_s=SOON_S * 2)


def finalized(cluster: Cluster) -> str:
    """Returns the release of the cluster's metadata."""
    described = tool("kafka-features", "--bootstrap-server", cluster.bootstrap, "describe", timeout_s=SOON_S * 2)
    level: str = re.findall(r"metadata\.version\s.*FinalizedVersionLevel: (.*?)\s+Epoch", described)[0]
    return level


def commit(producer: Producer, text: str) -> None:
    producer.begin_transaction()
    for index in range(3):
        producer.produce("transactions", text, partition=index)
    producer.commit_transaction(SOON_S)
