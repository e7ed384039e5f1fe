"""SASL PLAIN: a name and a password in one message (RFC 4616).

Source: org.apache.kafka.common.security.plain.internals.PlainSaslServer, whose error messages clients get.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from protocol.sasl.exchange import ExchangeStep, ProvenIdentity, SaslError

TOKENS: Final = 3
"""Number of tokens in the message: authorization id, name and password."""


class PlainServer:
    """The broker's side of an exchange, which is a single message."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def step(self, message: bytes) -> ExchangeStep:
        """Processes the client's only message. Raises SaslError."""
        tokens = message.decode("utf-8", "replace").split("\0", TOKENS)
        if len(tokens) != TOKENS:
            reason = f"Invalid SASL/PLAIN response: expected {TOKENS} tokens, got {len(tokens)}"
            raise SaslError(reason, may_be_told=True)
        authorization_id, name, password = tokens
        if not name or not password:
            missing = "username" if not name else "password"
            raise SaslError(f"Authentication failed: {missing} not specified", may_be_told=True)
        if not self._is_right(name, password):
            raise SaslError("Authentication failed: Invalid username or password", may_be_told=True)
        if authorization_id not in ("", name):
            reason = "Authentication failed: Client requested an authorization id that is different from username"
            raise SaslError(reason, may_be_told=True)
        return ExchangeStep(b"", ProvenIdentity(name))

    def _is_right(self, name: str, password: str) -> bool:
        """True if the password is right. Its time reveals neither a matching prefix nor whether the user exists."""
        expected = self._passwords.get(name)
        given_digest = hmac.digest(b"", password.encode("utf-8", "surrogatepass"), "sha256")
        expected_digest = hmac.digest(b"", (expected or "").encode("utf-8", "surrogatepass"), "sha256")
        return hmac.compare_digest(given_digest, expected_digest) and bool(expected)


def plain_message(name: str, password: str) -> bytes:
    """Returns the client's only message."""
    return f"\0{name}\0{password}".encode()
