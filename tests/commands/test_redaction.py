"""Tests that the texts of a debug bundle have no secrets."""

from __future__ import annotations

import pytest

from commands.state.redaction import is_secret, redacted

HIDDEN = "hunter2"


@pytest.mark.parametrize(
    "text",
    [
        f"ssl.key.password={HIDDEN}",
        f'{{"sasl.password": "{HIDDEN}", "event": "x"}}',
        f'{{"sasl.password": "a\\"{HIDDEN}", "event": "x"}}',
        f'sasl.jaas.config=x.PlainLoginModule required username="ana" password="{HIDDEN}";',
        f"listener.name.sasl.scram.sasl.jaas.config = x required a='b' password='{HIDDEN}';\nnext",
        f"Authorization: Bearer {HIDDEN}",
        f"delegation.token.secret.key: {HIDDEN}",
        f"hmac={HIDDEN}, next",
        f"http://ana:{HIDDEN}@host:1/path",
        f"-----BEGIN PRIVATE KEY-----\n{HIDDEN}\n-----END PRIVATE KEY-----\nnext",
        f"-----BEGIN RSA PRIVATE KEY-----\n{HIDDEN}",
    ],
)
def test_a_secret_is_removed_and_its_name_stays(text: str) -> None:
    assert HIDDEN not in redacted(text)
    assert redacted(text) != ""


@pytest.mark.parametrize(
    "text",
    ["log.retention.ms=5", '{"event": "registered", "node": 3}', "http://127.0.0.1:9404/metrics", "odradek_bytes 5\n"],
)
def test_other_texts_stay(text: str) -> None:
    assert redacted(text) == text


def test_names_of_secret_configs() -> None:
    assert all(map(is_secret, ("ssl.keystore.key", "a.sasl.jaas.config", "delegation.token.secret.key")))
    assert not any(map(is_secret, ("delegation.token.max.lifetime.ms", "log.retention.ms")))
