"""Tests the first mistakes of a newcomer on one broker: each gets an answer that helps, and soon."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest

from odradek.testing import Broker
from odradek.testing.fixtures import broker_fixture
from tests.interop.brokers import Odradek
from tests.interop.commanding import UNLIMITED, Feed, call

pytestmark = [pytest.mark.odradek_only, pytest.mark.commands, pytest.mark.ci]

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
plain = broker_fixture("module", AUTHORIZER)
secured = broker_fixture("module", {"delegation.token.secret.key": "key"}, users={"ana": "secret"})
encrypted = broker_fixture("module", users={"ana": "secret"}, tls=True)


def test_a_listener_with_sasl_names_the_protocol_that_it_needs(
    secured: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = call(capsys, secured.bootstrap, ("topic", "list"))
    assert outcome.status == 3
    assert "set security.protocol to SASL_PLAINTEXT" in outcome.err


def test_a_listener_with_sasl_and_tls_names_the_protocol_that_it_needs(
    encrypted: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    trust = ("-X", "security.protocol=SSL", "-X", f"ssl.ca.location={encrypted.certificate}")
    outcome = call(capsys, encrypted.bootstrap, ("topic", "list", *trust))
    assert outcome.status == 3
    assert "or to SASL_SSL if it uses TLS" in outcome.err


def test_a_wrong_password_is_named(secured: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    config = {**secured.client_config("ana"), "sasl.password": "wrong"}
    del config["bootstrap.servers"]
    login = [word for name, value in config.items() for word in ("-X", f"{name}={value}")]
    outcome = call(capsys, secured.bootstrap, ("topic", "list", *login))
    assert outcome.status == 3
    assert "sasl.username and sasl.password must be a user's" in outcome.err


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port whose program waits for a line, as an HTTP server does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("words", [("topic", "list"), ("group", "describe", "g")])
def test_a_port_that_is_not_kafkas_says_so_soon(
    silent_port: int, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    outcome = call(capsys, f"127.0.0.1:{silent_port}", (*words, *UNLIMITED))
    assert outcome.status == 3
    assert "it isn't a Kafka broker's" in outcome.err


def test_a_port_that_answers_in_another_protocol_says_so_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
            connection.recv(1)
            connection.close()

        threading.Thread(target=greet, daemon=True).start()
        outcome = call(capsys, f"127.0.0.1:{server.getsockname()[1]}", ("topic", "list"))
    assert outcome.status in (1, 3)
    assert "Kafka" in outcome.err


def test_a_topic_with_fewer_replicas_than_requested_says_so(plain: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = call(capsys, plain.bootstrap, ("topic", "create", "lowered", "-r", "3")).rows
    assert row["replicas"] == 1
    assert row["result"] == "created, with fewer than 3 replicas: the cluster has too few brokers"
    (row,) = call(capsys, plain.bootstrap, ("topic", "create", "usual", "-r", "1")).rows
    assert row["result"] == "created"


def test_a_misspelt_key_of_json_is_refused_with_its_line(
    plain: Broker, capsys: pytest.CaptureFixture[str], feed: Feed
) -> None:
    assert call(capsys, plain.bootstrap, ("topic", "create", "typed", "-p", "1")).status == 0
    feed(b'{"key":"a","payload":"1"}\n\n{"key":"b","payloadd":"2"}\n')
    outcome = call(capsys, plain.bootstrap, ("produce", "typed", "-J"))
    assert outcome.status == 2
    assert "line 3: unknown key 'payloadd'; did you mean payload?" in outcome.err
    assert plain.records("typed") == []


def test_roles_add_the_entries_of_a_producer_and_of_a_consumer(
    plain: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    producer = ("acl", "add", "--allow", "User:shop", "--producer", "--topic", "orders", "--transactional-id", "t")
    consumer = ("acl", "add", "--allow", "User:bill", "--consumer", "--topic", "orders", "--group", "g")
    for words in (producer, consumer):
        assert call(capsys, plain.bootstrap, words).status == 0
    rows = call(capsys, plain.bootstrap, ("acl", "list")).rows
    assert sorted((row["principal"], row["resource"], row["name"], row["operation"]) for row in rows) == [
        ("User:bill", "group", "g", "read"),
        ("User:bill", "topic", "orders", "describe"),
        ("User:bill", "topic", "orders", "read"),
        ("User:shop", "topic", "orders", "create"),
        ("User:shop", "topic", "orders", "describe"),
        ("User:shop", "topic", "orders", "write"),
        ("User:shop", "transactional-id", "t", "describe"),
        ("User:shop", "transactional-id", "t", "write"),
    ]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--producer", "--group", "g"), "--producer needs --topic"),
        (("--consumer", "--topic", "t"), "--consumer needs --group"),
        (("--consumer", "--topic", "t", "--group", "g", "--cluster"), "--consumer has no operation on --cluster"),
        (("--operation", "read", "--topic", "t", "--group", "g"), "name one resource"),
        (("--operation", "read", "--producer", "--topic", "t"), "not allowed with"),
    ],
)
def test_a_role_without_its_resources_is_refused(
    plain: Broker, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str
) -> None:
    outcome = call(capsys, plain.bootstrap, ("acl", "add", "--allow", "User:x", *words))
    assert outcome.status == 2
    assert reason in outcome.err


def test_globs_and_patterns_choose_topics(plain: Broker, capsys: pytest.CaptureFixture[str], feed: Feed) -> None:
    for topic in ("glob-a", "glob-b", "blog"):
        plain.create_topic(topic, partitions=1)
        feed(f"of {topic}\n".encode())
        assert call(capsys, plain.bootstrap, ("produce", topic)).status == 0

    def topics(*words: str, status: int = 0) -> list[object]:
        outcome = call(capsys, plain.bootstrap, words)
        assert outcome.status == status, outcome
        return [row["topic"] for row in outcome.rows]

    assert topics("topic", "list", "glob-*") == ["glob-a", "glob-b"]
    assert topics("topic", "describe", "--pattern", "blog|glob-[b-z]") == ["blog", "glob-b"]
    assert topics("topic", "describe", "blog", "*-a") == ["blog", "glob-a"]
    assert sorted(map(str, topics("consume", "glob-?", "-e", "-o", "json"))) == ["glob-a", "glob-b"]
    assert topics("topic", "describe", "x*", status=1) == []
    assert topics("topic", "describe", "--pattern", "(", status=2) == []
    assert topics("topic", "describe", status=2) == []
    assert topics("topic", "delete", "glob-*", "--yes") == ["glob-a", "glob-b"]
    assert topics("topic", "list", "--pattern", ".*log.*") == ["blog"]


def test_features_are_listed_and_changed(plain: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["feature"]: row for row in call(capsys, plain.bootstrap, ("feature", "list")).rows}
    level = rows["transaction.version"]["level"]
    assert level == rows["transaction.version"]["max"] == 2
    lower = ("feature", "downgrade", "transaction.version=1")
    assert call(capsys, plain.bootstrap, (*lower, "--dry-run")).rows[0]["result"] == "would be changed"
    assert call(capsys, plain.bootstrap, lower).rows[0]["result"] == "changed"
    assert call(capsys, plain.bootstrap, ("feature", "upgrade", "transaction.version=2")).status == 0
    refused = call(capsys, plain.bootstrap, ("feature", "upgrade", "transaction.version=99"))
    assert refused.status == 1
    assert "error" in refused.rows[0]
    assert call(capsys, plain.bootstrap, ("feature", "upgrade", "transaction.version=x")).status == 2


def test_delegation_tokens_are_created_renewed_and_expired(
    secured: Broker, capsys: pytest.CaptureFixture[str], feed: Feed
) -> None:
    config = secured.client_config("ana")
    login = [
        word for name, value in config.items() if name != "bootstrap.servers" for word in ("-X", f"{name}={value}")
    ]

    def token(*words: str, status: int = 0) -> list[dict[str, object]]:
        outcome = call(capsys, secured.bootstrap, ("token", *words, *login))
        assert outcome.status == status, outcome
        return outcome.rows

    (created,) = token("create", "--lifetime", "1d", "--renewer", "User:bob")
    assert created["owner"] == "User:ana"
    (listed,) = token("list")
    assert (listed["token"], listed["renewers"]) == (created["token"], ["User:bob"])
    assert created["hmac"] not in listed.values()
    feed(f"{created['hmac']}\n".encode())
    (renewed,) = token("renew", "--for", "1h")
    assert str(renewed["expires"]) < str(created["expires"])
    token("expire", "--yes")
    assert token("list", "--owner", "User:ana") == []
    token("renew", status=1)
    feed(b"?\n")
    token("renew", status=2)


def test_a_topic_is_analyzed(plain: Broker, capsys: pytest.CaptureFixture[str], feed: Feed) -> None:
    assert call(capsys, plain.bootstrap, ("topic", "create", "analyzed", "-p", "2")).status == 0
    feed(b"k1:" + b"v" * 98 + b"\nk2:x\nk1:y\n")
    assert call(capsys, plain.bootstrap, ("produce", "analyzed", "-p", "0", "-K", ":", "-z", "gzip")).status == 0
    feed(b"alone\n")
    assert call(capsys, plain.bootstrap, ("produce", "analyzed", "-p", "1", "-H", "a=b")).status == 0
    assert call(capsys, plain.bootstrap, ("produce", "analyzed", "-p", "1", "-k", "k3", "--tombstone")).status == 0
    (topic,) = call(capsys, plain.bootstrap, ("topic", "analyze", "analyzed")).rows
    assert isinstance(topic["partitions"], list)
    first, second = topic["partitions"]
    assert (first["records"], first["bytes"], first["keys"], first["keyless"], first["codecs"]) == (
        3,
        106,
        2,
        0,
        {"gzip": 1},
    )
    assert (second["records"], second["keyless"], second["tombstones"], second["with_headers"]) == (2, 1, 1, 1)
    assert second["codecs"] == {"none": 2}
    assert (topic["records"], topic["keys"], topic["batches"]) == (5, 3, 3)
    assert (topic["half_under"], topic["99_percent_under"]) == (4, 128)
    (one,) = call(capsys, plain.bootstrap, ("topic", "analyze", "analyzed", "-n", "1", "-o", "json")).rows
    assert one["records"] == 1
    assert call(capsys, plain.bootstrap, ("topic", "analyze", "analyzed", "-o", "table")).out.startswith(
        "topic analyzed\n"
    )


@pytest.mark.parametrize("words", [("consume", "ordres", "-e"), ("produce", "ordres"), ("topic", "describe", "ordres")])
def test_a_misspelt_topic_gets_a_suggestion(
    plain: Broker, capsys: pytest.CaptureFixture[str], feed: Feed, words: tuple[str, ...]
) -> None:
    call(capsys, plain.bootstrap, ("topic", "create", "orders", "-p", "1"))
    feed(b"x\n")
    outcome = call(capsys, plain.bootstrap, words)
    assert outcome.status == 1
    assert outcome.err.endswith("did you mean orders?\n")


def test_a_record_that_is_too_large_names_the_config(
    plain: Broker, capsys: pytest.CaptureFixture[str], feed: Feed
) -> None:
    call(capsys, plain.bootstrap, ("topic", "create", "small", "-p", "1", "-c", "max.message.bytes=1000"))
    feed(b"x" * 2000)
    outcome = call(capsys, plain.bootstrap, ("produce", "small"))
    assert outcome.status == 1
    assert "`odradek topic alter TOPIC -c max.message.bytes=N`" in outcome.err


def test_output_that_cannot_be_written_is_one_line(plain: Broker) -> None:
    plain.create_topic("many", partitions=1)
    words = [Odradek.program, "topic", "list", "-b", plain.bootstrap]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1
    assert ended.stderr == b"odradek: standard output: No space left on device\n"


@pytest.mark.parametrize("words", [("topic", "list"), ("doctor",)])
def test_a_closed_port_is_named_in_the_systems_words(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    outcome = call(capsys, f"127.0.0.1:{port}", words)
    assert outcome.status == 3
    assert f"127.0.0.1:{port}: cannot be connected to: Connection refused" in outcome.err
    assert "Errno" not in outcome.err
