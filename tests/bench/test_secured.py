"""Tests peers with TLS: the options that their tools get."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.load import ToolRun
from bench.loads import LOADS
from bench.peers.secured import ApacheKafkaWithTls, Encrypted, OdradekWithTls, make_certificates


@pytest.mark.parametrize("peer", [OdradekWithTls, ApacheKafkaWithTls])
@pytest.mark.parametrize(("load", "trust"), [("produce", "ssl.truststore.location"), ("consume", "ssl.ca.location")])
def test_a_tool_speaks_tls_in_its_own_words(peer: type[Encrypted], load: str, trust: str, tmp_path: Path) -> None:
    made = peer(tmp_path)
    made.bootstrap, made.encrypted = "127.0.0.1:1", "127.0.0.1:2"
    command = made.tool(LOADS[load]).command(ToolRun(made.bootstrap, "topic", LOADS[load], 0, tmp_path))
    assert "127.0.0.1:2" in command
    assert "127.0.0.1:1" not in command
    assert "security.protocol=SSL" in command
    assert any(word == f"{trust}={made.work / 'ca.pem'}" for word in command)


def test_apache_kafka_has_both_listeners_and_its_controller(tmp_path: Path) -> None:
    peer = ApacheKafkaWithTls(tmp_path)
    peer.bootstrap, peer.encrypted = "127.0.0.1:1", "127.0.0.1:2"
    lines = dict(
        line.split("=", 1) for line in peer.write_properties(tmp_path, peer.bootstrap).read_text().splitlines()
    )
    listeners = lines["listeners"].split(",")
    assert listeners[:2] == ["PLAINTEXT://127.0.0.1:1", "SSL://127.0.0.1:2"]
    assert lines["advertised.listeners"].split(",") == listeners[:2]
    assert listeners[2].removeprefix("CONTROLLER://") == lines["controller.quorum.voters"].removeprefix("1@")


def test_a_broker_s_key_is_nobody_else_s_to_read(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    assert (tmp_path / "broker.pem").stat().st_mode & 0o077 == 0
