"""Authenticates this side to a broker by SASL, before the first request: an authenticator of `client.handshake`.

Source: org.apache.kafka.common.security.authenticator.SaslClientAuthenticator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from client.handshake import Authenticator, Dialogue, Question
from client.versions import PeerVersions
from protocol.errors import KafkaError, error_code
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.sasl.plain import plain_message
from protocol.sasl.scram import DIGESTS, base36
from protocol.sasl.scram_client import ScramClient

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *DIGESTS)
"""The mechanisms that this side supports."""

NONCE_BYTES: Final = 20

Exchange = Generator[bytes, bytes, None]
"""Yields a mechanism's messages, and receives the response to each message."""


def authenticator(mechanism: str, name: str, password: str, draw: Callable[[int], bytes]) -> Authenticator:
    """Returns the authenticator of a user; `draw` returns random bytes."""

    def authenticate(_: PeerVersions) -> Dialogue:
        exchange = _plain(name, password) if mechanism == PLAIN else _scram(mechanism, name, password, draw)
        return _dialogue(mechanism, exchange)

    return authenticate


def _dialogue(mechanism: str, exchange: Exchange) -> Dialogue:
    """Sends the messages in order; returns the session's lifetime in milliseconds."""
    chosen = yield Question(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
    assert isinstance(chosen, SaslHandshakeResponse)
    if chosen.error_code:
        offered = ", ".join(chosen.mechanisms) or "none"
        raise KafkaError(error_code(chosen.error_code), f"it does not enable {mechanism}, only {offered}")
    lifetime_ms = 0
    message = next(exchange)
    while True:
        answer = yield Question(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse)
        assert isinstance(answer, SaslAuthenticateResponse)
        if answer.error_code:
            raise KafkaError(error_code(answer.error_code), answer.error_message or "it rejected the credentials")
        lifetime_ms = answer.session_lifetime_ms
        try:
            message = exchange.send(answer.auth_bytes)
        except StopIteration:
            return lifetime_ms


def _plain(name: str, password: str) -> Exchange:
    yield plain_message(name, password)


def _scram(mechanism: str, name: str, password: str, draw: Callable[[int], bytes]) -> Exchange:
    client = ScramClient(mechanism, name, password, base36(int.from_bytes(draw(NONCE_BYTES))))
    challenge = yield client.first()
    verifier = yield client.final(challenge)
    client.check(verifier)
