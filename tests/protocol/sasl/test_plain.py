"""Tests SASL PLAIN: its single message, right or wrong."""

from __future__ import annotations

import pytest

from protocol.sasl.exchange import ExchangeStep, ProvenIdentity, SaslError
from protocol.sasl.plain import PlainServer, plain_message

USERS = {"alice": "secret", "bob": "pässword", "empty": ""}


@pytest.mark.parametrize(("name", "message"), [
    ("alice", b"\0alice\0secret"),
    ("alice", b"alice\0alice\0secret"),
    ("bob", plain_message("bob", "pässword")),
])  # fmt: skip
def test_the_right_password_proves_its_user(name: str, message: bytes) -> None:
    assert PlainServer(USERS).step(message) == ExchangeStep(b"", ProvenIdentity(name))


@pytest.mark.parametrize(("message", "reason"), [
    (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
    (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
    (b"\0nobody\0", "Authentication failed: password not specified"),
    (b"\0empty\0", "Authentication failed: password not specified"),
    (b"\0\0secret", "Authentication failed: username not specified"),
    (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
    (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    (b"\0\0\0\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    (b"bob\0alice\0secret", "Client requested an authorization id that is different from username"),
    (b"\0alice\0\xff", "Authentication failed: Invalid username or password"),
])  # fmt: skip
def test_anything_else_is_refused_in_the_words_of_kafka(message: bytes, reason: str) -> None:
    with pytest.raises(SaslError) as failed:
        PlainServer(USERS).step(message)
    assert reason in failed.value.reason
    assert failed.value.may_be_told
