"""Tests brokers of Apache Kafka and of Odradek under a controller of Odradek, and the output of Apache's tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop import jvm
from tests.interop.own_quorum import OdradekNode, OwnQuorum
from tests.interop.quorum import CONTROLLER_ID, ApacheNode
from tests.interop.test_own_controller import SOON_S, consumed, leader_and_isr, log_bytes, produced
from tests.waiting import eventually

ODRADEK, APACHE = 1, 2

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnQuorum]:
    quorum = OwnQuorum(tmp_path_factory.mktemp("own-jvm"))
    quorum.controller.start()
    yield quorum
    assert quorum.controller.stop() == 0
    quorum.controller.forget()


@pytest.fixture(scope="module")
def odradek(quorum: OwnQuorum) -> Iterator[OdradekNode]:
    broker = quorum.odradek(ODRADEK)
    broker.start()
    yield broker
    assert broker.stop() == 0
    broker.forget()


@pytest.fixture(scope="module")
def apache(quorum: OwnQuorum, odradek: OdradekNode) -> Iterator[ApacheNode]:
    broker, address = quorum.apache(APACHE)
    broker.start()
    broker.bootstrap = address  # type: ignore[attr-defined]
    yield broker
    broker.stop()
    broker.forget()


@pytest.fixture
def brokers(odradek: OdradekNode, apache: ApacheNode) -> list[OdradekNode]:
    return [odradek, apache]  # type: ignore[list-item]  # of which the tests need data and address


def created(brokers: list[OdradekNode], topic: str, replicas: list[int]) -> str:
    """Creates a topic by a client of Apache Kafka's broker, which forwards the request."""
    admin = AdminClient({"bootstrap.servers": brokers[1].bootstrap})
    admin.create_topics([NewTopic(topic, 1, replica_assignment=[replicas])])[topic].result(SOON_S)
    for broker in brokers:
        eventually(lambda broker=broker: leader_and_isr(broker, topic), (replicas[0], sorted(replicas)))  # type: ignore[misc]
    return topic


@pytest.mark.parametrize("replicas", [[ODRADEK, APACHE], [APACHE, ODRADEK]], ids=["led here", "led there"])
def test_both_makes_replicate_for_each_other(brokers: list[OdradekNode], topic: str, replicas: list[int]) -> None:
    created(brokers, topic, replicas)
    produced(brokers, topic, range(1000))
    assert consumed(brokers, topic) == [*range(1000)]
    eventually(lambda: log_bytes(brokers[0], topic) == log_bytes(brokers[1], topic), True)


def test_a_controller_that_is_killed_and_comes_back_finds_its_brokers(
    quorum: OwnQuorum, brokers: list[OdradekNode], topic: str
) -> None:
    created(brokers, topic, [APACHE, ODRADEK])
    produced(brokers, topic, range(100), quorum.controller.kill9)
    quorum.controller.start()
    created(brokers, f"{topic}-more", [APACHE, ODRADEK])
    produced(brokers, f"{topic}-more", range(100))
    assert consumed(brokers, topic) == [*range(100)]


def test_apache_kafka_s_broker_that_is_killed_is_fenced_and_comes_back(
    brokers: list[OdradekNode], apache: ApacheNode, topic: str
) -> None:
    created(brokers, topic, [APACHE, ODRADEK])
    produced(brokers, topic, range(100), apache.kill9)
    eventually(lambda: leader_and_isr(brokers[0], topic), (ODRADEK, [ODRADEK]))
    apache.start()
    eventually(lambda: leader_and_isr(brokers[0], topic)[1], [ODRADEK, APACHE])
    assert consumed(brokers, topic) == [*range(100)]
    eventually(lambda: log_bytes(brokers[0], topic) == log_bytes(brokers[1], topic), True)


@pytest.mark.parametrize("by_controller", [False, True])
def test_the_tools_describe_the_quorum(quorum: OwnQuorum, brokers: list[OdradekNode], by_controller: bool) -> None:
    where = ("--bootstrap-controller", quorum.address)
    if not by_controller:
        where = ("--bootstrap-server", brokers[1].bootstrap)
    text = jvm.tool("kafka-metadata-quorum", *where, "describe", "--status")
    assert re.search(rf"LeaderId:\s+{CONTROLLER_ID}\n", text), text
    assert f'"id": {CONTROLLER_ID}' in text
    replication = jvm.tool("kafka-metadata-quorum", *where, "describe", "--replication")
    roles = {int(line.split()[0]): line.split()[-1] for line in replication.splitlines()[1:] if line.strip()}
    assert roles == {CONTROLLER_ID: "Leader", ODRADEK: "Observer", APACHE: "Observer"}


def test_the_tools_administer_through_either_broker(quorum: OwnQuorum, brokers: list[OdradekNode], topic: str) -> None:
    created(brokers, topic, [ODRADEK, APACHE])
    features = jvm.tool("kafka-features", "--bootstrap-controller", quorum.address, "describe")
    assert re.search(rf"metadata\.version\s.*FinalizedVersionLevel: {jvm.NEWEST_METADATA}\s", features), features
    cluster = jvm.tool("kafka-cluster", "cluster-id", "--bootstrap-controller", quorum.address)
    assert "Cluster ID: " in cluster
    plan = quorum.folder / "plan.json"
    move = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [APACHE]}]}
    plan.write_text(json.dumps(move))
    words = ("--bootstrap-server", brokers[1].bootstrap, "--reassignment-json-file", str(plan))
    jvm.tool("kafka-reassign-partitions", *words, "--execute")
    eventually(lambda: leader_and_isr(brokers[0], topic), (APACHE, [APACHE]))
    move["partitions"][0]["replicas"] = [ODRADEK, APACHE]  # type: ignore[index]
    plan.write_text(json.dumps(move))
    jvm.tool("kafka-reassign-partitions", *words, "--execute")
    eventually(lambda: leader_and_isr(brokers[0], topic), (APACHE, [ODRADEK, APACHE]))
    jvm.tool(
        "kafka-leader-election", "--bootstrap-server", brokers[1].bootstrap, "--election-type", "preferred",
        "--topic", topic, "--partition", "0",
    )  # fmt: skip
    eventually(lambda: leader_and_isr(brokers[0], topic), (ODRADEK, [ODRADEK, APACHE]))
    assert topic in jvm.tool("kafka-topics", "--bootstrap-server", brokers[1].bootstrap, "--list")
    jvm.tool("kafka-topics", "--bootstrap-server", brokers[1].bootstrap, "--delete", "--topic", topic)


def test_apache_kafka_s_broker_has_options_that_our_controller_does_not_know(
    quorum: OwnQuorum, brokers: list[OdradekNode]
) -> None:
    of_broker = ("--bootstrap-server", brokers[1].bootstrap, "--entity-type", "brokers", "--entity-name", str(APACHE))
    jvm.tool("kafka-configs", *of_broker, "--alter", "--add-config", "num.io.threads=9")
    described = jvm.tool("kafka-configs", *of_broker, "--describe")
    assert "num.io.threads=9 " in described, described


def test_the_log_and_its_copies_are_read_by_kafka_dump_log(quorum: OwnQuorum, brokers: list[OdradekNode]) -> None:
    logs = [node.data / "__cluster_metadata-0" / f"{0:020d}.log" for node in (quorum.controller, *brokers)]
    first = logs[0].read_bytes()
    for copied in logs[1:]:
        eventually(lambda copied=copied: first.startswith(copied.read_bytes()[: len(first)]), True)  # type: ignore[misc]
    text = jvm.tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(logs[0]))
    assert '"type":"REGISTER_CONTROLLER_RECORD"' in text
    assert text.count('"type":"REGISTER_BROKER_RECORD"') >= 2
    assert "LeaderChange" in text
    assert "KRaftVoters" in text
