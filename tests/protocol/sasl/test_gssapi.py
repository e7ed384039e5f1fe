"""Tests SASL GSSAPI: the order of its messages, with any kind of context."""

from __future__ import annotations

import pytest

from protocol.sasl.exchange import ExchangeStep, ProvenIdentity, SaslError
from protocol.sasl.gssapi import GssapiServer
from tests.protocol.sasl.gss_context import SaidContext, simple

OFFER = b"w\x01\x00\x00\x00"
CHOICE = b"w\x01\x00\x00\x00"


def exchange(*messages: bytes, expires_ms: int | None = None) -> list[ExchangeStep]:
    server = GssapiServer(SaidContext(expires_ms), simple)
    return [server.step(message) for message in messages]


def test_a_client_that_asks_for_no_proof_is_offered_no_layer_at_once() -> None:
    assert exchange(b"alice@REALM", CHOICE) == [ExchangeStep(OFFER), ExchangeStep(None, ProvenIdentity("alice"))]


def test_a_client_that_asks_for_proof_acknowledges_it_first() -> None:
    steps = exchange(b"mutual alice@REALM", b"", CHOICE, expires_ms=7)
    assert steps == [ExchangeStep(b"proof"), ExchangeStep(OFFER), ExchangeStep(None, ProvenIdentity("alice", 7))]


@pytest.mark.parametrize("authzid", [b"alice", b"bob", b"kafkaclient", b"\xff", b"x" * 1000])
def test_whom_a_client_would_be_is_passed_over(authzid: bytes) -> None:
    assert exchange(b"alice@REALM", CHOICE + authzid)[-1].identity == ProvenIdentity("alice")


@pytest.mark.parametrize("messages", [
    [b""],
    [b"no ticket"],
    [b"mutual alice@REALM", b"mutual alice@REALM"],     # a second context
    [b"mutual alice@REALM", CHOICE],
    [b"alice@REALM", b""],
    [b"alice@REALM", b"alice@REALM"],
    [b"alice@REALM", b"\x01\x00\x00\x00"],              # not wrapped
    [b"alice@REALM", b"w"],
    [b"alice@REALM", b"w\x01\x00\x00"],
    [b"alice@REALM", b"w\x00\x00\x00\x00"],
    [b"alice@REALM", b"w\x02\x00\xff\xff"],
    [b"alice@REALM", b"w\x04\x00\xff\xff"],
    [b"alice@REALM", b"w\x03\x00\xff\xff"],
    [b"nobody@REALM", CHOICE],
    [b"alice@REALM", CHOICE, b""],
    [b"alice@REALM", CHOICE, b"alice@REALM"],
])  # fmt: skip
def test_anything_else_is_refused_and_says_nothing_to_the_client(messages: list[bytes]) -> None:
    server = GssapiServer(SaidContext(), simple)
    for message in messages[:-1]:
        server.step(message)
    with pytest.raises(SaslError) as failed:
        server.step(messages[-1])
    assert not failed.value.may_be_told
    for message in (b"", b"alice@REALM", CHOICE):  # nor is anything taken that comes after it
        with pytest.raises(SaslError):
            server.step(message)
