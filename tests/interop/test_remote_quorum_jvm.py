"""Tests an Odradek broker under Apache Kafka's own controller, with Apache's tools and all clients."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.interop.brokers import Odradek
from tests.interop.jvm import NEWEST_METADATA, tool
from tests.interop.processes import run
from tests.interop.quorum import Quorum
from tests.waiting import eventually

BROKER = 1
SOON_S = 30


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    quorum = Quorum(tmp_path_factory.mktemp("quorum"))
    quorum.controller.start()
    yield quorum
    quorum.controller.stop()
    quorum.controller.forget()


@pytest.fixture(scope="module")
def member(quorum: Quorum) -> Iterator[Odradek]:
    """Yields a broker that has joined."""
    broker = quorum.odradek(BROKER)
    broker.start()
    yield broker
    assert broker.stop() == 0
    broker.forget()


def topics(broker: Odradek, *arguments: str) -> str:
    return tool("kafka-topics", "--bootstrap-server", broker.bootstrap, *arguments)


def produce(bootstrap: str, topic: str, lines: list[str], *arguments: str) -> None:
    words = ["kcat", "-b", bootstrap, "-P", "-t", topic, *arguments]
    run(words, stdin="".join(f"{line}\n" for line in lines).encode())


def consumed(bootstrap: str, topic: str, *arguments: str) -> list[str]:
    """Returns all records in the topic, sorted."""
    words = ["kcat", "-b", bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q", *arguments]
    return sorted(run(words).stdout.decode().splitlines())


def numbers(count: int) -> list[str]:
    return sorted(map(str, range(count)))


def test_topics_are_made_changed_and_deleted_by_the_controller(member: Odradek, topic: str) -> None:
    topics(member, "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1")
    topics(member, "--alter", "--topic", topic, "--partitions", "3")
    described = topics(member, "--describe", "--topic", topic)
    assert re.findall(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: (\d+)\s+Isr: (\d+)", described) == [
        (str(index), "1", "1", "1") for index in range(3)
    ]
    folders = sorted(folder.name for folder in member.data.glob(f"{topic}-?"))
    assert folders == [f"{topic}-{index}" for index in range(3)]
    topics(member, "--delete", "--topic", topic)
    eventually(lambda: topic in topics(member, "--list").split(), False)


def test_a_refused_topic_is_told_in_the_controller_s_words(member: Odradek, topic: str) -> None:
    with pytest.raises(AssertionError, match="Unable to replicate the partition 3 time"):
        topics(member, "--create", "--topic", topic, "--replication-factor", "3")


def test_what_kcat_writes_java_reads_and_the_other_way_round(member: Odradek, topic: str) -> None:
    topics(member, "--create", "--topic", topic, "--partitions", "3", "--replication-factor", "1")
    server = ("--bootstrap-server", member.bootstrap, "--topic", topic)
    produce(member.bootstrap, topic, numbers(50))
    tool("kafka-console-producer", *server, stdin="".join(f"{number}\n" for number in range(50, 100)))
    assert consumed(member.bootstrap, topic) == numbers(100)
    group = ("--group", f"{topic}-readers", "--from-beginning", "--max-messages", "100")
    read = tool("kafka-console-consumer", *server, *group)
    assert sorted(read.split()) == numbers(100)
    described = tool(
        "kafka-consumer-groups", "--bootstrap-server", member.bootstrap, "--describe", "--group", f"{topic}-readers"
    )
    assert sum(int(lag) for lag in re.findall(rf"{topic}\s+\d+\s+\d+\s+\d+\s+(\d+)", described)) == 0


def test_a_topic_is_made_for_who_writes_to_it(member: Odradek, topic: str) -> None:
    produce(member.bootstrap, topic, numbers(10))
    assert consumed(member.bootstrap, topic) == numbers(10)


def test_a_transaction_has_its_producer_id_from_the_controller(member: Odradek, topic: str) -> None:
    topics(member, "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1")
    producer = Producer({"bootstrap.servers": member.bootstrap, "transactional.id": topic})
    producer.init_transactions(SOON_S)
    for is_committed in (True, False):
        producer.begin_transaction()
        for number in range(20):
            producer.produce(topic, str(number if is_committed else -number - 1).encode())
        producer.flush(SOON_S)
        (producer.commit_transaction if is_committed else producer.abort_transaction)(SOON_S)
    assert consumed(member.bootstrap, topic, "-X", "isolation.level=read_committed") == numbers(20)
    listed = tool("kafka-transactions", "--bootstrap-server", member.bootstrap, "list")
    producer_ids = re.findall(rf"{topic}\s+\d+\s+(\d+)", listed)
    assert len(producer_ids) == 1


def test_a_topic_s_configs_are_altered_and_described(member: Odradek, topic: str) -> None:
    topics(member, "--create", "--topic", topic, "--replication-factor", "1")
    entity = ("--bootstrap-server", member.bootstrap, "--entity-type", "topics", "--entity-name", topic)
    tool("kafka-configs", *entity, "--alter", "--add-config", "retention.ms=12345")
    eventually(lambda: "retention.ms=12345" in tool("kafka-configs", *entity, "--describe"), True)


def test_the_broker_is_an_observer_of_the_quorum_and_keeps_up(member: Odradek) -> None:
    described = tool("kafka-metadata-quorum", "--bootstrap-server", member.bootstrap, "describe", "--replication")
    nodes = {line.split()[0]: (int(line.split()[3]), line.split()[-1]) for line in described.splitlines()[1:]}
    assert nodes["100"][1] == "Leader"
    assert nodes[str(BROKER)][1] == "Observer"
    assert nodes[str(BROKER)][0] < 100, "records behind"


def test_the_cluster_s_features_are_those_of_the_controller(member: Odradek) -> None:
    described = tool("kafka-features", "--bootstrap-server", member.bootstrap, "describe")
    assert re.search(rf"metadata\.version.*FinalizedVersionLevel: {NEWEST_METADATA}\s", described), described
    assert re.search(r"transaction.version.*FinalizedVersionLevel: 2", described)


def test_it_comes_back_from_a_clean_stop_with_the_epoch_that_it_had(member: Odradek, topic: str) -> None:
    topics(member, "--create", "--topic", topic, "--replication-factor", "1")
    produce(member.bootstrap, topic, numbers(20))
    assert member.stop() == 0
    marker = json.loads((member.data / ".kafka_cleanshutdown").read_text())
    assert marker["brokerEpoch"] > 0
    member.start()
    eventually(lambda: consumed(member.bootstrap, topic), numbers(20))


def test_what_was_acknowledged_is_there_after_a_kill(member: Odradek, topic: str) -> None:
    topics(member, "--create", "--topic", topic, "--replication-factor", "1")
    produce(member.bootstrap, topic, numbers(20), "-X", "acks=all")
    member.kill9()
    member.start()
    eventually(lambda: consumed(member.bootstrap, topic), numbers(20))


def test_it_serves_while_there_is_no_controller_and_finds_it_again(quorum: Quorum, member: Odradek, topic: str) -> None:
    topics(member, "--create", "--topic", topic, "--replication-factor", "1")
    quorum.controller.stop()
    produce(member.bootstrap, topic, numbers(20), "-X", "acks=all")
    assert consumed(member.bootstrap, topic) == numbers(20)
    quorum.controller.start()
    topics(member, "--create", "--topic", f"{topic}-again", "--replication-factor", "1")
    produce(member.bootstrap, f"{topic}-again", numbers(20), "-X", "acks=all")
    assert consumed(member.bootstrap, f"{topic}-again") == numbers(20)


def test_it_leads_beside_a_broker_of_apache_kafka(quorum: Quorum, member: Odradek, topic: str) -> None:
    other, address = quorum.apache(3)
    other.start()
    try:
        topics(member, "--create", "--topic", topic, "--replica-assignment", "1,3,1,3")
        described = topics(member, "--describe", "--topic", topic)
        assert re.findall(r"Leader: (\d+)", described) == ["1", "3", "1", "3"]
        for partition in range(4):
            produce(member.bootstrap, topic, [str(partition)] * 5, "-p", str(partition), "-X", "acks=all")
        everything = sorted(str(partition) for partition in range(4) for _ in range(5))
        assert consumed(member.bootstrap, topic) == everything
        assert consumed(address, topic) == everything
        assert [folder.name for folder in sorted(other.data.glob(f"{topic}-?"))] == [f"{topic}-1", f"{topic}-3"]
        tool("kafka-topics", "--bootstrap-server", address, "--delete", "--topic", topic)
        eventually(lambda: topic in topics(member, "--list").split(), False)
    finally:
        other.stop()
        other.forget()


def test_the_controller_is_told_in_which_directory_a_replica_was_put(
    quorum: Quorum, member: Odradek, topic: str
) -> None:
    broker = quorum.odradek(6, dirs=2)
    broker.start()
    topics(member, "--create", "--topic", topic, "--replica-assignment", "6,6")
    segment = quorum.controller.data / "__cluster_metadata-0" / f"{0:020d}.log"

    def reported() -> set[str]:
        dumped = tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(segment))
        changes = re.findall(r'"PARTITION_CHANGE_RECORD".*"directories":\["(\S+?)"\]', dumped)
        return set(changes)

    own = {
        directory_id
        for text in properties_of(broker)
        for directory_id in re.findall(r"^directory.id=(\S+)$", text, re.MULTILINE)
    }
    assert len(own) == 2
    eventually(lambda: reported() >= own, True)
    assert broker.stop() == 0
    broker.forget()


def properties_of(broker: Odradek) -> list[str]:
    """Returns the meta.properties of its log directories."""
    return [file.read_text() for file in broker.data.parent.glob(f"{broker.data.name}*/meta.properties")]


def test_a_broker_that_is_gone_for_good_is_unregistered(quorum: Quorum, member: Odradek) -> None:
    second = quorum.odradek(2)
    second.start()
    listed = tool("kafka-cluster", "list-endpoints", "--bootstrap-server", member.bootstrap)
    assert re.search(rf"^2\s.*{second.bootstrap.rpartition(':')[2]}", listed, re.MULTILINE)
    assert second.stop() == 0
    second.forget()
    fenced = ("list-endpoints", "--bootstrap-server", member.bootstrap, "--include-fenced-brokers")
    assert re.search(r"^2\s.*fenced", tool("kafka-cluster", *fenced), re.MULTILINE)
    tool("kafka-cluster", "unregister", "--bootstrap-server", member.bootstrap, "--id", "2")
    eventually(lambda: re.search(r"^2\s", tool("kafka-cluster", *fenced), re.MULTILINE) is None, True)


def test_a_broker_of_another_cluster_is_refused_in_one_line(quorum: Quorum) -> None:
    limit: dict[str, Any] = {"initial.broker.registration.timeout.ms": "10000"}
    stranger = quorum.odradek(4, cluster_id="c3RyYW5nZXItY2x1c3RlcgA", **limit)
    ended = subprocess.run(stranger.command(), capture_output=True, timeout=SOON_S, check=False)
    assert ended.returncode == 1
    lines = [json.loads(line) for line in ended.stderr.decode().splitlines()]
    (reason,) = [line["reason"] for line in lines if line["event"] == "cannot start"]
    assert re.search(r"node.id 4 of cluster c3Ry\S+ could not register .* INCONSISTENT_CLUSTER_ID", reason)


def test_a_directory_that_nobody_has_formatted_is_refused(quorum: Quorum) -> None:
    broker = Odradek(quorum.folder / "new", {**quorum.joining, "node.id": "5"})
    ended = subprocess.run(broker.command(), capture_output=True, timeout=SOON_S, check=False)
    assert ended.returncode == 1
    assert b"format it with `odradek format`" in ended.stderr
