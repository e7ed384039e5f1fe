"""Compares the commands on Odradek and Apache Kafka: the same words give the same output, except for names and
times."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.broker.security.certificates import Authority
from tests.interop.brokers import Broker, Odradek
from tests.interop.commanding import Feed, Run, call
from tests.interop.processes import Server, free_port

pytestmark = pytest.mark.odradek_only  # it starts both


def test_a_topic_from_its_creation_to_its_end(run: Run, topic: str) -> None:
    assert run("topic", "create", topic, "-p", "2", "-r", "1", "-c", "retention.ms=1000").rows == [
        {"topic": topic, "partitions": 2, "replicas": 1, "result": "created"}
    ]
    run("topic", "create", topic, status=1)
    run("topic", "create", topic, "--if-not-exists")
    run("topic", "create", f"{topic}-dry", "--dry-run", "-p", "1")
    (described,) = run("topic", "describe", topic).rows
    assert described["configs"] == {"retention.ms": "1000"}
    run("topic", "alter", topic, "--unset", "retention.ms", "-c", "max.message.bytes=1000")
    assert run("topic", "describe", topic).rows[0]["configs"] == {"max.message.bytes": "1000"}
    run("topic", "alter", topic, "-c", "no.such.config=1", status=1)
    run("topic", "grow", topic, "-p", "4", "--dry-run")
    run("topic", "grow", topic, "--by", "1")
    run("topic", "grow", topic, "-p", "1", status=1)
    run("topic", "trim", topic, "--to", "end", "--yes")
    assert [row["topic"] for row in run("topic", "list").rows if row["topic"] == topic] == [topic]
    run("topic", "delete", topic, "--yes")
    run("topic", "delete", topic, "--yes", status=1)
    run("topic", "describe", topic, status=1)


def test_replicas_are_placed_by_hand(run: Run, topic: str) -> None:
    run("topic", "create", topic, "--assign", "0:1", "--assign", "1:1")
    run("topic", "create", f"{topic}-wrong", "--assign", "0:7", status=1)


def test_configs_with_their_sources(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-p", "1")
    run("config", "set", "topic", topic, "retention.ms=5000", "--append", "cleanup.policy=compact")
    assert {row["config"]: (row["value"], row["source"]) for row in run("config", "describe", "topic", topic).rows} == {
        "cleanup.policy": ("delete,compact", "topic"),
        "retention.ms": ("5000", "topic"),
    }
    run("config", "set", "topic", topic, "--subtract", "cleanup.policy=delete", "--unset", "retention.ms")
    run("config", "describe", "topic", topic, "--match", "retention")
    run("config", "set", "broker", "all", "log.cleaner.threads=2", "--dry-run")
    run("config", "set", "broker", "1", "broker.id=5", status=1)
    run("config", "describe", "topic", "no-such-topic", status=1)


def test_one_config_is_printed_bare(
    command_brokers: list[Broker], capsys: pytest.CaptureFixture[str], topic: str
) -> None:
    for broker in command_brokers:
        call(capsys, broker.bootstrap, ("topic", "create", topic, "-c", "retention.ms=77"))
        assert call(capsys, broker.bootstrap, ("config", "get", "topic", topic, "retention.ms")).out == "77\n"
        assert call(capsys, broker.bootstrap, ("config", "get", "topic", topic, "no.such")).status == 2


def test_records_are_sent_and_read(run: Run, feed: Feed, topic: str) -> None:
    run("topic", "create", topic, "-p", "3")
    feed(b"k1:one\nk2:two\nk3:three\n")
    run("produce", topic, "-K", ":", "-H", "a=b", "-z", "zstd", "--timestamp", "1767225600000")
    rows = run("consume", topic, "--exit-at-end").rows
    assert {row["key"]: (row["payload"], row["headers"]) for row in rows} == {
        "k1": ("one", ["a", "b"]),
        "k2": ("two", ["a", "b"]),
        "k3": ("three", ["a", "b"]),
    }
    feed(b'{"key":"k4","payload_base64":"/w==","partition":2}\n')
    run("produce", topic, "--json", "--acks", "1", "--timestamp", "1767225600001")
    assert [row["payload_base64"] for row in run("consume", topic, "-p", "2", "--from", "-1", "-e").rows] == ["/w=="]
    run("produce", topic, "-k", "k1", "--tombstone", "--timestamp", "1767225600002")
    assert len(run("consume", topic, "--from", "@1767225600001", "--until", "end").rows) == 2
    assert len(run("consume", topic, "-n", "2").rows) == 2
    run("consume", topic, "-p", "9", status=2)
    run("produce", f"{topic}-none", "-k", "k", "--tombstone", status=1)


def test_a_transaction_is_seen_whole_or_not_at_all(run: Run, feed: Feed, topic: str) -> None:
    run("topic", "create", topic, "-p", "1")
    feed(b"one\ntwo\n")
    run("produce", topic, "--transactional-id", topic, "--timestamp", "1767225600000")
    feed(b'{"payload":"three"}\n{"payload":"four","partition":7}\n')
    run("produce", topic, "--json", "--transactional-id", topic, "--timestamp", "1767225600000", "-D", "\\n", status=1)
    feed(b"five\n")
    run("produce", topic, "-z", "lz4", "--timestamp", "1767225600000")
    committed = [row["payload"] for row in run("consume", topic, "-e").rows]
    assert committed == ["one", "two", "five"]
    assert [row["payload"] for row in run("consume", topic, "-e", "--isolation", "read_uncommitted").rows] == committed


def test_a_group_goes_on_where_it_was(run: Run, feed: Feed, topic: str) -> None:
    run("topic", "create", topic, "-p", "2")
    feed(b"a:1\nb:2\nc:3\n")
    run("produce", topic, "-K", ":", "--timestamp", "1767225600000")
    assert len(run("consume", topic, "-g", topic, "-n", "2").rows) == 2
    assert len(run("consume", topic, "-g", topic, "-e").rows) == 1
    assert run("consume", topic, "-g", topic, "-e").rows == []


def test_a_group_is_listed_described_reset_and_deleted(run: Run, feed: Feed, topic: str, tmp_path: Path) -> None:
    run("topic", "create", topic, "-p", "2")
    feed(b"a:1\nb:2\nc:3\n")
    run("produce", topic, "-K", ":", "--timestamp", "1767225600000")
    run("consume", topic, "-g", topic, "-e")
    (listing,) = [row for row in run("group", "list", "--type", "classic").rows if row["group"] == topic]
    assert (listing["state"], listing["protocol"]) == ("Empty", "consumer")
    (described,) = run("group", "describe", topic).rows
    assert (described["members"], described["lag"]) == (0, 0)
    saved = tmp_path / "offsets.json"
    saved.write_text(json.dumps(described))
    assert {row["result"] for row in run("group", "reset", topic, "--to", "start").rows} == {"would be set"}
    assert run("group", "describe", topic).rows[0]["lag"] == 0
    run("group", "reset", topic, "--to", "start", "--yes")
    assert run("group", "describe", topic).rows[0]["lag"] == 3
    run("group", "reset", topic, "--to-file", str(saved), "--yes")
    assert run("group", "describe", topic).rows[0]["lag"] == 0
    run("group", "reset", topic, "--shift", "-1", "--yes")
    run("group", "reset", f"{topic}-2", "--to-group", topic, "--yes")
    assert run("group", "describe", f"{topic}-2").rows[0]["lag"] == 1
    run("group", "reset", topic, "--to", "@1767225600001", "--topic", f"{topic}:0", "--yes")
    run("group", "reset", topic, "--to", "end", "--topic", f"{topic}:9", status=2)
    assert run("group", "members", topic).rows == []
    run("group", "forget", f"{topic}-2", topic, "--yes")
    run("group", "delete", topic, "--yes")
    run("group", "delete", topic, "--yes", status=1)
    run("group", "describe", topic, status=1)


def test_members_of_two_clients_share_partitions(command_brokers: list[Broker], topic: str) -> None:
    for broker in command_brokers:
        seen: list[str] = []
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "allow.auto.create.topics": True,
            }
        )
        environment = {**os.environ, "ODRADEK_BOOTSTRAP": broker.bootstrap}
        program = [Odradek.program]
        subprocess.run([*program, "topic", "create", topic, "-p", "2"], env=environment, check=True)
        consumer.subscribe([topic])
        ours = subprocess.Popen(
            [*program, "consume", topic, "-g", topic, "-n", "1"], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            deadline = time.monotonic() + 60
            while len(consumer.assignment()) != 1:
                consumer.poll(0.1)
                members = subprocess.run(
                    [*program, "group", "members", topic], env=environment, capture_output=True, text=True
                )
                assert time.monotonic() < deadline, members
            for partition in "01":
                send = [*program, "produce", topic, "-p", partition]
                subprocess.run(send, input=partition.encode(), env=environment, check=True, stdout=subprocess.DEVNULL)
            while not seen:
                message = consumer.poll(1.0)
                value = None if message is None or message.error() else message.value()
                seen += [value.decode()] if value else []
                assert time.monotonic() < deadline
            line, _ = ours.communicate(timeout=60)
            assert {json.loads(line)["payload"], *seen} == {"0", "1"}
        finally:
            ours.kill()
            consumer.close()


def test_transactions_are_listed_described_and_found_to_hang(run: Run, feed: Feed, topic: str) -> None:
    run("topic", "create", topic, "-p", "1")
    feed(b"one\n")
    run("produce", topic, "--transactional-id", topic, "--timestamp", "1767225600000")
    (described,) = run("txn", "describe", topic, varying={"producer", "started", "state", "partitions"}).rows
    assert described["timeout_ms"] == 60_000
    (listed,) = [row for row in run("txn", "list", varying={"producer", "state"}).rows if row["id"] == topic]
    assert listed["state"] in ("CompleteCommit", "PrepareCommit")
    run("txn", "describe", f"{topic}-none", status=1)
    assert run("txn", "hanging", topic).rows == []
    run("txn", "abort", f"{topic}:0", "--start-offset", "0", "--yes", status=1)


def test_passwords_and_quotas_of_users(run: Run, feed: Feed) -> None:
    feed(b"secret\n")
    run("user", "set", "ana")
    run("user", "set", "ana", "--mechanism", "SCRAM-SHA-256", "--iterations", "4096")
    run("user", "set", "bob", "--iterations", "7", status=1)
    assert [(row["mechanism"], row["iterations"]) for row in run("user", "list").rows] == [
        ("SCRAM-SHA-256", 4096),
        ("SCRAM-SHA-512", 8192),
    ]
    assert "--yes" in run("user", "delete", "ana", status=2).err
    run("user", "delete", "ana", "--yes")
    run("user", "delete", "ana", "--yes", status=1)
    run("quota", "set", "--user", "ana", "producer_byte_rate=1048576", "consumer_byte_rate=5")
    run("quota", "set", "--user", "<default>", "--client-id", "batch", "request_percentage=50")
    assert len(run("quota", "list").rows) == 2
    assert run("quota", "list", "--user", "ana").rows == [
        {"user": "ana", "quotas": {"consumer_byte_rate": 5.0, "producer_byte_rate": 1048576.0}}
    ]
    run("quota", "set", "--user", "ana", "--unset", "producer_byte_rate")
    run("quota", "set", "--user", "ana", "no_such_rate=1", status=1)


def test_without_an_authorizer_there_are_no_acls(run: Run) -> None:
    allowed = ("acl", "add", "--allow", "User:ana", "--topic", "orders", "--operation", "read")
    for words in (("acl", "list"), allowed, ("acl", "delete", "--topic", "orders", "--yes")):
        outcome = run(*words, status=1)
        assert "SECURITY_DISABLED" in outcome.out + outcome.err


def test_a_cluster_is_described(run: Run) -> None:
    varying = {"cluster", "port", "led", "replicas", "topics", "partitions", "bytes", "free_bytes"}
    (described,) = run("cluster", "describe", varying=varying).rows
    assert described["without_leader"] == 0


@pytest.mark.parametrize(
    ("mechanism", "protocol"), [("SCRAM-SHA-256", "SASL_PLAINTEXT"), ("SCRAM-SHA-512", "SASL_SSL")]
)
def test_a_user_whose_password_was_set_gets_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], feed: Feed, mechanism: str, protocol: str
) -> None:
    authority = Authority(tmp_path)
    plain, secured = (f"127.0.0.1:{free_port()}" for _ in range(2))
    listeners = f"PLAINTEXT://{plain},{protocol}://{secured}"
    options = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "sasl.enabled.mechanisms": mechanism,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("server")),
    }
    properties = tmp_path / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
    client = tmp_path / "client.properties"
    client.write_text(
        f"security.protocol={protocol}\nsasl.mechanism={mechanism}\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={authority.certificate}\nacks=all\nsasl.jaas.config="
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="ana" password="pa,ss=word";\n'
    )
    server = Server("odradek", tmp_path / "log")
    server.launch([Odradek.program, "run", str(properties), "--data", str(tmp_path / "data")], r"^ready", 30)
    try:
        feed(b"pa,ss=word\n")
        assert call(capsys, plain, ("user", "set", "ana", "--mechanism", mechanism)).status == 0
        as_ana = ("topic", "list", "--config", str(client))
        assert call(capsys, secured, as_ana).status == 0
        refused = call(capsys, secured, (*as_ana, "-X", "sasl.username=ana", "-X", "sasl.password=wrong"))
        assert refused.status == 3
        assert "SASL_AUTHENTICATION_FAILED" in refused.err
        assert call(capsys, secured, ("topic", "list", "-X", "request.timeout.ms=5000")).status == 3
    finally:
        server.stop()
        server.forget()


def test_nothing_is_destroyed_unless_asked_twice(run: Run, topic: str) -> None:
    run("topic", "create", topic)
    assert "--yes" in run("topic", "delete", topic, status=2).err
    assert "--yes" in run("topic", "trim", topic, "--to", "end", status=2).err
    run("topic", "describe", topic)


def test_a_command_without_a_broker_says_where_it_looked(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "127.0.0.1:1", ("topic", "list"))
    assert outcome.status == 3
    assert "127.0.0.1:1" in outcome.err
    assert "--bootstrap" in outcome.err
