"""SASL OAUTHBEARER: an issuer's token in one message, and an error that the client acknowledges (RFC 7628).

The caller supplies a function that validates tokens; this module parses the messages.
Source: org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslServer, OAuthBearerClientInitialResponse.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from protocol.sasl.exchange import ExchangeStep, ProvenIdentity, SaslError
from protocol.sasl.scram import unescaped

SEPARATOR: Final = "\x01"
AUTH: Final = "auth"
"""The key of the token in the key-value pairs."""

SASLNAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
PAIR: Final = r"[A-Za-z]+=[\x20-\x7e\t\r\n]+\x01"
INITIAL: Final = re.compile(rf"n,(?:a=(?P<authzid>{SASLNAME}))?,\x01(?P<pairs>(?:{PAIR})*)\x01")
BEARER: Final = re.compile(r"(?P<scheme>[A-Za-z0-9_]+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


class BearerToken(NamedTuple):
    """The claims of a valid token that the broker uses."""

    principal: str
    expires_ms: int
    """The token's expiry, in milliseconds since 1970."""


class TokenRefused(Exception):
    """An invalid token. The text is for the log; the client gets `scope`, which the token lacks."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.scope = scope


Validate = Callable[[str], BearerToken]
"""Validates a token. Raises TokenRefused."""


class InitialMessage(NamedTuple):
    """The client's first message: its authorization id and its token."""

    authorization_id: str
    token: str


class OAuthBearerServer:
    """The broker's side of an exchange. The first message decides. A rejection is JSON, which the client acknowledges
    before it gets the error."""

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._refused: TokenRefused | None = None

    def step(self, message: bytes) -> ExchangeStep:
        """Processes the first message, or the message after a rejection. Raises SaslError."""
        if self._refused is not None:
            raise SaslError(self._refused.reason, client_message=error_json(self._refused))
        initial = initial_message(message)
        try:
            token = self._validate(initial.token)
        except TokenRefused as refused:
            self._refused = refused
            return ExchangeStep(error_json(refused).encode(), refusal=refused.reason)
        if initial.authorization_id not in ("", token.principal):
            reason = (
                f"Authentication failed: Client requested an authorization id ({initial.authorization_id}) that is "
                f"different from the token's principal name ({token.principal})"
            )
            raise SaslError(reason, may_be_told=True)
        return ExchangeStep(b"", ProvenIdentity(token.principal, token.expires_ms))


def initial_message(message: bytes) -> InitialMessage:
    """Parses the client's first message. Accepts extensions, and ignores them. Raises SaslError."""
    match = INITIAL.fullmatch(message.decode("utf-8", "replace"))
    if match is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split(SEPARATOR) if pair)
    if AUTH not in pairs:
        raise SaslError("Invalid OAUTHBEARER client first message: 'auth' not specified")
    bearer = BEARER.fullmatch(pairs[AUTH])
    if bearer is None:
        raise SaslError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if bearer["scheme"].lower() != "bearer":
        raise SaslError("Invalid scheme in OAUTHBEARER client first message")
    return InitialMessage(unescaped(match["authzid"] or ""), bearer["token"])


def error_json(refused: TokenRefused) -> str:
    """Returns the JSON with which a client learns why its token was rejected (RFC 7628, 3.2.2)."""
    if refused.scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":"{refused.scope}"}}'
