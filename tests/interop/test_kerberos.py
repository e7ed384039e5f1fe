"""Tests clients with tickets of a real KDC (Debian's krb5-kdc): their permissions, and their rejections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop import jvm
from tests.interop.kerberized import PLAINTEXT, SSL, Place, started_place
from tests.interop.processes import run
from tests.interop.realm import OTHER

pytestmark = [pytest.mark.odradek_only, pytest.mark.security]

PATIENCE_S = 60
INVALID = "invalid credentials with SASL mechanism GSSAPI"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with started_place(tmp_path_factory.mktemp("realm")) as place:
        yield place


@pytest.fixture(params=[PLAINTEXT, SSL])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def holding(patch: pytest.MonkeyPatch, place: Place, user: str) -> None:
    """Makes clients that start here use a user's ticket."""
    patch.setenv("KRB5CCNAME", f"FILE:{place.ticket(user)}")


def librdkafka(place: Place, protocol: str, **others: Any) -> dict[str, str]:
    return {
        "bootstrap.servers": place.broker.at(protocol),
        "security.protocol": protocol,
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.kinit.cmd": "true",      # the ticket is here
        "ssl.ca.location": str(place.authority.certificate),
        "broker.address.family": "v4",
        **{name.replace("_", "."): value for name, value in others.items()},
    }  # fmt: skip


def kcat(place: Place, protocol: str, *arguments: str, stdin: bytes = b"", check: bool = True, **others: Any) -> bytes:
    settings = [word for pair in librdkafka(place, protocol, **others).items() for word in ("-X", "=".join(pair))]
    ended = run(["kcat", *settings, *arguments], stdin=stdin, timeout_s=PATIENCE_S, check=check)
    return ended.stdout if check else ended.stdout + ended.stderr


OLD = {"api_version_request": "false", "broker_version_fallback": "0.9.0.1"}


@pytest.mark.parametrize("age", [{}, OLD], ids=["", "as of 0.9, without SaslHandshake"])
def test_kcat_gets_in_by_a_ticket(
    place: Place, protocol: str, age: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    holding(monkeypatch, place, "alice")
    topic = f"kcat-{protocol}-{len(age)}"
    kcat(place, protocol, "-P", "-t", topic, stdin=b"one\ntwo\n", **age)
    assert kcat(place, protocol, "-C", "-q", "-t", topic, "-o", "beginning", "-e", **age) == b"one\ntwo\n"


def kafka_python(place: Place, protocol: str, **others: object) -> dict[str, object]:
    return {
        "bootstrap_servers": place.broker.at(protocol), "security_protocol": protocol, "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka", "ssl_cafile": str(place.authority.certificate), **others,
    }  # fmt: skip


def send(place: Place, protocol: str, topic: str, **others: object) -> None:
    """Produces a record by kafka-python."""
    from kafka import KafkaProducer

    producer = KafkaProducer(**kafka_python(place, protocol, max_block_ms=PATIENCE_S * 500, **others))
    try:
        producer.send(topic, b"one").get(timeout=PATIENCE_S)
    finally:
        producer.close(1)


def test_kafka_python_gets_in_by_a_ticket(place: Place, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka import KafkaConsumer

    holding(monkeypatch, place, "alice")
    topic = f"kafka-python-{protocol}"
    send(place, protocol, topic)
    consumer = KafkaConsumer(
        topic, **kafka_python(place, protocol, auto_offset_reset="earliest", consumer_timeout_ms=PATIENCE_S * 1000)
    )
    assert next(iter(consumer)).value == b"one"
    consumer.close()


def test_aiokafka_gets_in_by_a_ticket(place: Place, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.helpers import create_ssl_context

    holding(monkeypatch, place, "alice")
    topic = f"aiokafka-{protocol}"

    async def both() -> bytes:
        context = create_ssl_context(cafile=str(place.authority.certificate)) if protocol == SSL else None
        settings = {
            "bootstrap_servers": place.broker.at(protocol), "security_protocol": protocol, "ssl_context": context,
            "sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": "kafka",
            "sasl_kerberos_domain_name": "localhost",
        }  # fmt: skip
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"one")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings) as consumer:
            value: bytes = (await asyncio.wait_for(consumer.getone(), PATIENCE_S)).value
            return value

    assert asyncio.run(both()) == b"one"


def test_java_gets_in_by_a_keytab(place: Place, protocol: str) -> None:
    arguments: tuple[str, ...] = ("--bootstrap-server", place.broker.at(protocol), "--topic", f"java-{protocol}")
    arguments += ("--command-config", place.properties("alice", protocol))
    jvm.tool("kafka-console-producer", *arguments, stdin="one\n")
    assert "one" in jvm.tool("kafka-console-consumer", *arguments, "--from-beginning", "--max-messages", "1")


def test_entries_are_about_the_short_name(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """carol/staff is User:staff-carol; bob has no permissions."""
    at = ("--bootstrap-server", place.broker.at(PLAINTEXT), "--command-config")
    allow = ("--add", "--producer", "--topic", "staff", "--allow-principal", "User:staff-carol")
    jvm.tool("kafka-acls", *at, place.properties("alice", PLAINTEXT), *allow)
    listed = jvm.tool("kafka-acls", *at, place.properties("alice", PLAINTEXT), "--list")
    assert "principal=User:staff-carol" in listed
    holding(monkeypatch, place, "carol/staff")
    kcat(place, PLAINTEXT, "-P", "-t", "staff", stdin=b"one\n")
    holding(monkeypatch, place, "bob")
    refused = kcat(place, PLAINTEXT, "-P", "-t", "staff", stdin=b"one\n", check=False)
    assert b"authorization failed" in refused.lower()
    acls = run(jvm.command_of("kafka-acls", *at, place.properties("bob", PLAINTEXT), "--list"), check=False)
    assert b"ClusterAuthorizationException" in acls.stdout + acls.stderr


@pytest.mark.parametrize("user", ["root", f"guest@{OTHER}"])
def test_rules_make_other_names(place: Place, user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """root has no name; a guest of the other realm is guest-other, which has no permissions either."""
    from kafka.errors import TopicAuthorizationFailedError

    holding(monkeypatch, place, user)
    with pytest.raises(TopicAuthorizationFailedError):
        send(place, PLAINTEXT, "others")
    audit = place.broker.tail()
    assert ("User:guest-other" if OTHER in user else "User:nobody") in audit, audit[-2000:]


def test_who_is_of_a_realm_without_a_rule_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, place, f"stranger@{OTHER}")
    assert INVALID.encode() in kcat(place, PLAINTEXT, "-L", check=False)
    assert f"sasl.kerberos.principal.to.local.rules: no rule matches 'stranger@{OTHER}'" in place.broker.tail()


def test_who_has_no_ticket_stays_outside(place: Place) -> None:
    """The client itself reports it."""
    assert b"No Kerberos credentials available" in kcat(place, PLAINTEXT, "-L", check=False)


@pytest.mark.parametrize(("service", "words"), [("other", INVALID), ("missing", "not found in Kerberos database")])
def test_a_ticket_for_another_service_is_refused(
    place: Place, service: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    holding(monkeypatch, place, "alice")
    refused = kcat(place, PLAINTEXT, "-L", check=False, sasl_kerberos_service_name=service)
    assert words.encode() in refused, refused


def test_java_is_told_that_it_is_refused(place: Place) -> None:
    other = place.properties("alice", PLAINTEXT, sasl_kerberos_service_name="other")
    command = jvm.command_of(
        "kafka-topics", "--bootstrap-server", place.broker.at(PLAINTEXT), "--command-config", other, "--list"
    )
    refused = run(command, check=False)
    expected = "SaslAuthenticationException: Authentication failed during authentication due to " + INVALID
    assert expected.encode() in refused.stdout + refused.stderr


def test_a_new_key_is_taken_from_the_keytab_without_a_restart(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the key is in the keytab, a client with a ticket for it is rejected."""
    own = place.keytabs["kafka/localhost"]
    before = own.read_bytes()
    place.realm.renew("kafka/localhost")
    after = own.read_bytes()
    own.write_bytes(before)
    holding(monkeypatch, place, "alice")
    assert INVALID.encode() in kcat(place, PLAINTEXT, "-L", check=False)
    own.write_bytes(after)
    assert b"broker" in kcat(place, PLAINTEXT, "-L")
