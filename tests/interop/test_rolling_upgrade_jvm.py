"""Upgrades clusters from Kafka 4.3 to 4.4 node by node, and then their metadata, while clients work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.jars import APACHE_KAFKA, APACHE_TOOLS
from tests.docs.cluster_page import commands, section
from tests.interop import jvm
from tests.interop.load import Load
from tests.interop.mixture import CALM, SOON_S, Cluster
from tests.interop.processes import run
from tests.interop.sharing import EXPLICIT, Consumers
from tests.interop.test_mixture_jvm import OURS, THEIRS, Mixture
from tests.interop.test_share_dead_letters import letters
from tests.interop.word_counts import TOPICS, WordCounts, start_streams
from tests.waiting import eventually

TOPIC = "under-load"
THREE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
BEFORE = {"metadata.version": "4.3-IV0", "share.version": "1", "streams.version": "1"}
AFTER = {"metadata.version": jvm.NEWEST_METADATA, "share.version": "2", "streams.version": "1"}
SETTINGS = {**CALM, "errors__deadletterqueue__auto__create__topics__enable": "true"}


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """Yields a cluster of release 4.3."""
    cluster = Cluster(
        tmp_path,
        request.param.brokers,
        *request.param.controllers,
        format_with=("--release-version", "4.3"),
        **SETTINGS,
    )
    for node in cluster.nodes:
        node.version = APACHE_TOOLS
    cluster.start()
    yield cluster
    cluster.forget()


@pytest.fixture
def application(cluster: Cluster, tmp_path: Path) -> Iterator[WordCounts]:
    for topic in TOPICS:
        cluster.create(topic, THREE[:2])
    streams = start_streams(tmp_path)
    yield WordCounts(cluster.bootstrap, streams, tmp_path / "state", SOON_S)
    streams.close()


def features(cluster: Cluster) -> dict[str, str]:
    """Returns the levels of features whose levels the test compares."""
    described = jvm.tool("kafka-features", "--bootstrap-server", cluster.bootstrap, "describe", timeout_s=SOON_S)
    levels = re.findall(r"^Feature: (\S+)\s.*FinalizedVersionLevel: (.*?)\s+Epoch", described, re.M)
    return {name: level for name, level in levels if name in AFTER}


def upgrade(cluster: Cluster) -> str:
    """Runs the command of the page; returns its output."""
    (command,) = [one for one in commands(section("Upgrading")) if "upgrade" in one.words]
    program, *words = (cluster.bootstrap if word == "kafka-1.example:9092" else word for word in command.words)
    ended = run(jvm.command_of(program.removesuffix(".sh"), *words), timeout_s=SOON_S, check=False)
    return (ended.stdout + ended.stderr).decode()


def check_dead_letters(cluster: Cluster, consumers: Consumers) -> None:
    """Checks that a share group delivers, and that rejected records go to its queue, which needs share.version 2."""
    consumers.bootstrap = cluster.bootstrap
    cluster.create("shared", THREE[:1])
    consumers.configure(
        "groups", "shared", share_auto_offset_reset="earliest", errors_deadletterqueue_topic_name="dlq.shared",
        errors_deadletterqueue_copy_record_enable="true",
    )  # fmt: skip
    consumers.produce("shared", 4)
    consumers.open("member", "shared", EXPLICIT)
    delivered = consumers.poll("member", 4, timeout_s=SOON_S)
    assert [record.offset for record in delivered] == [0, 1, 2, 3]
    consumers.acknowledge("member", "ACCEPT", 0, 2)
    consumers.acknowledge("member", "REJECT", 1, 3)
    assert consumers.commit("member") == []
    received = letters(consumers, "dlq.shared", 2)
    assert {offset: value for offset, (value, _) in received.items()} == {1: "value-1", 3: "value-3"}
    consumers.close("member")


@pytest.mark.cluster
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "cluster",
    [
        Mixture((OURS, OURS, OURS), (THEIRS,)),
        Mixture((THEIRS, THEIRS, THEIRS), (OURS,)),
        Mixture((OURS, OURS, THEIRS), (THEIRS,)),
        Mixture((OURS, THEIRS, THEIRS), (OURS,)),
    ],
    indirect=True,
    ids=str,
)
def test_a_cluster_is_upgraded_under_load(cluster: Cluster, application: WordCounts, consumers: Consumers) -> None:
    cluster.create(TOPIC, THREE)
    load = Load(cluster.bootstrap, TOPIC, len(THREE))
    application.open("one")
    assert features(cluster) == BEFORE
    assert "only supports versions" in upgrade(cluster)
    for node in (*cluster.controllers, *cluster.members.values()):
        application.write(20)
        node.version = APACHE_KAFKA
        node.become(node.make)
        for topic in (TOPIC, *TOPICS):
            cluster.all_in_sync(topic, cluster.assignments[topic])
    assert features(cluster) == BEFORE
    assert "metadata.version was upgraded to 33" in upgrade(cluster)
    eventually(lambda: features(cluster), AFTER)
    application.write(20)
    application.wait_for_counts()
    check_dead_letters(cluster, consumers)
    for node in (*cluster.controllers, cluster.members[1]):
        node.become(node.make)
    load.finish()
    assert load.check()
    cluster.assert_replicated(TOPIC, THREE)
