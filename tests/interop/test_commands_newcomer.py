"""Tests the first mistakes of a newcomer on one broker: each gets an answer that helps, and soon."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from odradek.testing import Broker
from odradek.testing.fixtures import broker_fixture
from tests.interop.commanding import Feed, call

pytestmark = [pytest.mark.odradek_only, pytest.mark.commands]

SILENT_S = 8.0
"""Time within which a command reports a silent port, on a busy machine."""

plain = broker_fixture("module")
secured = broker_fixture("module", users={"ana": "secret"})
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


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port whose program waits for a line, as an HTTP server does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("words", [("topic", "list"), ("group", "describe", "g")])
def test_a_port_that_is_not_kafkas_says_so_soon(
    silent_port: int, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    started_s = time.monotonic()
    outcome = call(capsys, f"127.0.0.1:{silent_port}", words)
    assert time.monotonic() - started_s < SILENT_S
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
