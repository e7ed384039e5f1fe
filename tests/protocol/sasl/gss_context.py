"""A security context without Kerberos, whose tokens contain the outcome."""

from __future__ import annotations

from protocol.errors import ProtocolError
from protocol.sasl.exchange import SaslError
from protocol.sasl.gssapi import EstablishedContext

PROVEN = b"mutual "
"""Prefix of a principal: the client requires that this side authenticates too."""


class SaidContext:
    """Accepts a principal as its ticket, and wraps messages by prefixing a letter."""

    def __init__(self, expires_ms: int | None = None) -> None:
        self._expires_ms = expires_ms

    def accept(self, token: bytes) -> EstablishedContext:
        if token.endswith(b"later"):
            raise ProtocolError("its ticket is rejected this time: Ticket not yet valid", offset=0)
        if b"@" not in token:
            raise SaslError("the ticket is rejected: it is none")
        principal = token.removeprefix(b"\x60")
        answer = b"proof" if principal.startswith(PROVEN) else b""
        return EstablishedContext(answer, principal.removeprefix(PROVEN).decode(), self._expires_ms)

    def wrap(self, message: bytes) -> bytes:
        return b"w" + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(b"w"):
            raise SaslError("the ticket is rejected: A token had an invalid MIC")
        return message[1:]


def simple(principal: str) -> str:
    """Returns the first part of a principal; the principal `nobody` has no name."""
    if principal.startswith("nobody"):
        raise SaslError("no rule is for nobody")
    return principal.partition("@")[0]
