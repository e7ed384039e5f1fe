"""Tests absent SCRAM users: on which brokers and listeners their challenges are equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.disk import OsDisk
from storage.meta_properties import MetaProperties, write_meta_properties
from tests.broker.inprocess import Client, InProcess
from tests.broker.security.sasl import CLOSED, OPTIONS, authenticate, handshake, served

LOGIN = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="node" password="secret";'
COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "C",
    "listeners": "A://127.0.0.1:0,B://127.0.0.1:0,C://127.0.0.1:0",
    "inter.broker.listener.name": "A",
    "listener.security.protocol.map": "A:SASL_PLAINTEXT,B:SASL_PLAINTEXT,C:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
    "listener.name.a.scram-sha-256.sasl.jaas.config": LOGIN,
    "listener.name.c.scram-sha-256.sasl.jaas.config": LOGIN,
}
SECRET = "delegation.token.secret.key"


async def salt(broker: InProcess, listener: int = CLOSED) -> bytes:
    """Returns the salt of an absent user."""
    client = Client(broker.server, listener)
    await handshake(client, "SCRAM-SHA-256")
    answer = await authenticate(client, b"n,,n=nobody,r=abc")
    return answer.auth_bytes.split(b",")[1]


async def test_all_listeners_of_a_process_challenge_it_alike(tmp_path: Path) -> None:
    write_meta_properties(OsDisk(), str(tmp_path), MetaProperties("the-cluster", 1, b"directory-of-one"))
    async with InProcess(tmp_path, COMBINED) as broker:
        assert len(broker.server.listeners) == 3
        assert len({await salt(broker, listener) for listener in range(3)}) == 1


@pytest.mark.parametrize("options", [{}, {SECRET: ""}])
async def test_another_process_challenges_it_otherwise(tmp_path: Path, options: dict[str, str]) -> None:
    """An empty secret counts as none, because everybody knows it, and could find out which users exist."""
    salts = set()
    for name in ("a", "b"):
        async with InProcess(tmp_path / name, {**OPTIONS, **options}) as broker:
            salts.add(await salt(broker))
    assert len(salts) == 2


async def test_brokers_with_one_secret_challenge_it_alike(tmp_path: Path) -> None:
    salts = set()
    for name in ("a", "b"):
        async with served(tmp_path / name, delegation_token_secret_key="of the cluster") as broker:
            salts.add(await salt(broker))
    assert len(salts) == 1
