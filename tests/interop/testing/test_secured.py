"""Tests TLS, users and access control of a broker under test, set by simple arguments."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, Producer
from kafka import KafkaConsumer

from odradek.testing import Acl, Broker, BrokerError
from odradek.testing.fixtures import broker_fixture

pytestmark = [pytest.mark.odradek_only, pytest.mark.examples]
SOON_S = 30

secured = broker_fixture(
    scope="module",
    tls=True,
    users={"alice": 'a"\\ pass;word', "bob": "b"},
    acls=[
        Acl(user="alice", operation="ALL", topic="orders"),
        Acl(user="*", operation="READ", topic="orders"),
        Acl(user="bob", operation="READ", group="billing", prefixed=True),
    ],
)
encrypted = broker_fixture(scope="module", tls=True)


@pytest.fixture(scope="module", autouse=True)
def orders(secured: Broker) -> str:
    return secured.create_topic("orders")


def outcome(config: dict[str, str], topic: str) -> KafkaError | None:
    """Returns the error of a record; None if it was stored."""
    errors: list[KafkaError | None] = []
    writer = Producer({**config, "message.timeout.ms": 20_000})
    writer.produce(topic, "one", on_delivery=lambda error, _: errors.append(error))
    assert writer.flush(SOON_S) == 0
    return errors[0]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", pytest.param("SCRAM-SHA-512", marks=pytest.mark.ci)])
def test_a_user_may_do_what_the_entries_allow(secured: Broker, mechanism: str) -> None:
    assert outcome(secured.client_config("alice", mechanism=mechanism), "orders") is None
    refused = outcome(secured.client_config("bob", mechanism=mechanism), "orders")
    assert refused is not None
    assert refused.name() == "TOPIC_AUTHORIZATION_FAILED"


def test_kafka_python_reads_as_another_user(secured: Broker) -> None:
    assert outcome(secured.client_config(), "orders") is None
    reader = KafkaConsumer(
        "orders", group_id="billing-1", auto_offset_reset="earliest", consumer_timeout_ms=20_000,
        **secured.client_kwargs("bob"),
    )  # fmt: skip
    assert next(reader).value == b"one"
    reader.close()


async def test_aiokafka_writes_with_encryption_alone(encrypted: Broker) -> None:
    await encrypted.aio.create_topic("orders")
    async with AIOKafkaProducer(**encrypted.client_kwargs()) as writer:
        await writer.send_and_wait("orders", b"one")
    assert [record.value for record in await encrypted.aio.records("orders")] == [b"one"]


def test_who_is_no_user_is_told(secured: Broker, encrypted: Broker) -> None:
    with pytest.raises(ValueError, match="user 'carol': this broker has alice, bob"):
        secured.client_config("carol")
    with pytest.raises(ValueError, match="mechanism 'GSSAPI'"):
        secured.client_config(mechanism="GSSAPI")
    with pytest.raises(ValueError, match="without users="):
        encrypted.client_config("alice")


def test_a_broker_without_tls_has_no_certificate() -> None:
    with pytest.raises(BrokerError, match="tls=True"):
        Broker(users={"a": "b"}).certificate  # noqa: B018
