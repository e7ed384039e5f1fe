"""Tests how this node authenticates to other nodes: to another Odradek broker, over sockets."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import uvloop

from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.security.outbound import broker_settings, controller_settings
from client.address import Address
from client.aio import connect
from client.authenticator import authenticator
from client.errors import HandshakeFailed
from client.pool import Peer
from client.settings import Settings
from protocol.config import ConfigError
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.inprocess import InProcess
from tests.broker.security.sasl import CLOSED, OPTIONS, add_user, served

ALL_TOPICS = MetadataRequest(topics=None)
LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="alice-secret" '
    'user_alice="alice-secret";'
)
CLUSTER = {
    "process.roles": "broker",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "controller.listener.names": "C",
    "listeners": "B://127.0.0.1:0",
    "inter.broker.listener.name": "B",
    "listener.security.protocol.map": "B:SASL_PLAINTEXT,C:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "SCRAM-SHA-512",
    "listener.name.b.plain.sasl.jaas.config": LOGIN,
    "listener.name.c.scram-sha-512.sasl.jaas.config": LOGIN.replace("plain.Plain", "scram.Scram"),
}


@pytest.fixture(scope="module")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    """Uses uvloop, because a broker's connections need it."""
    policy: asyncio.AbstractEventLoopPolicy = uvloop.EventLoopPolicy()
    return policy


def address(broker: InProcess) -> Address:
    listener = broker.server.advertised[CLOSED]
    return Address("127.0.0.1", listener.port)


def settings(mechanism: str, name: str, password: str) -> Settings:
    return Settings(authenticators=(authenticator(mechanism, name, password, os.urandom),), connect_timeout_ms=30_000)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_who_authenticates_is_answered(tmp_path: Path, mechanism: str) -> None:
    async with served(tmp_path) as broker:
        add_user(broker.server, "alice", "alice-secret")
        to = settings(mechanism, "alice", "alice-secret")
        connection = await connect(address(broker), to, SystemClock())
        assert (await connection.send(ALL_TOPICS, MetadataResponse, timeout_ms=30_000)).brokers
        await connection.close()


@pytest.mark.parametrize(("mechanism", "code"), [
    ("PLAIN", ErrorCode.SASL_AUTHENTICATION_FAILED),
    ("SCRAM-SHA-256", ErrorCode.SASL_AUTHENTICATION_FAILED),
])  # fmt: skip
async def test_who_fails_learns_it_and_no_password_is_in_the_error(
    tmp_path: Path, mechanism: str, code: ErrorCode
) -> None:
    async with served(tmp_path) as broker:
        with pytest.raises(HandshakeFailed) as failed:
            await connect(address(broker), settings(mechanism, "alice", "not-it"), SystemClock())
        assert failed.value.code is code
        assert "not-it" not in str(failed.value)


async def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are(tmp_path: Path) -> None:
    options = {**OPTIONS, "sasl.enabled.mechanisms": "PLAIN"}
    async with InProcess(tmp_path, options) as broker:
        with pytest.raises(HandshakeFailed, match="does not enable SCRAM-SHA-512, only PLAIN"):
            await connect(address(broker), settings("SCRAM-SHA-512", "alice", "x"), SystemClock())


async def test_another_connection_is_made_before_a_session_ends(tmp_path: Path) -> None:
    async with served(tmp_path, connections_max_reauth_ms="800") as broker:
        peer = Peer(address(broker), settings("PLAIN", "alice", "alice-secret"), SystemClock(), lambda: 0.5)
        connections: set[object] = set()
        while len(connections) < 3:
            assert (await peer.send(ALL_TOPICS, MetadataResponse, timeout_ms=30_000)).brokers
            connections.add(id(await peer.connection(timeout_ms=30_000)))
        await peer.close()


def test_brokers_and_controllers_are_reached_as_their_listeners_say() -> None:
    config = BrokerConfig.parse(CLUSTER)
    assert len(broker_settings(config, "x").authenticators) == len(controller_settings(config).authenticators) == 1
    plain = BrokerConfig.parse({**CLUSTER, "listener.security.protocol.map": "B:PLAINTEXT,C:PLAINTEXT"})
    assert broker_settings(plain, "x").authenticators == controller_settings(plain).authenticators == ()


@pytest.mark.parametrize(("change", "problem"), [
    ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "inter.broker.protocol: listener B uses GSSAPI"),
    ({"sasl.mechanism.controller.protocol": "PLAIN"}, "listener.name.c.plain.sasl.jaas.config: set it to"),
    ({"listener.name.c.scram-sha-512.sasl.jaas.config": "M required;"}, "username and password are missing"),
    ({"sasl.enabled.mechanisms": "DIGEST-MD5"}, "sasl.enabled.mechanisms: listener B can't offer DIGEST-MD5"),
    ({"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"}, "listener B uses OAUTHBEARER, but this node can"),
    ({"listener.name.d.plain.sasl.jaas.config": LOGIN}, "listener.name.d.plain.sasl.jaas.config: unknown"),
    ({"principal.builder.class": "my.Builder"}, "principal.builder.class is my.Builder"),
])  # fmt: skip
def test_what_does_not_fit_stops_the_start(change: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as failed:
        BrokerConfig.parse({**CLUSTER, **change})
    assert "alice-secret" not in str(failed.value)
