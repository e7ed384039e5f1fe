"""The broker's side of a SASL exchange, for all mechanisms."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class SaslError(Exception):
    """A failed authentication, or a malformed message. `reason` is only for the log, unless `may_be_told`, because a
    response to an unauthenticated client must not reveal users. The client gets `client_message` instead."""

    def __init__(self, reason: str, *, may_be_told: bool = False, client_message: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.client_message = reason if may_be_told else client_message

    @property
    def may_be_told(self) -> bool:
        """True if the client gets a message besides the error code."""
        return self.client_message is not None


class ProvenIdentity(NamedTuple):
    """The user that an exchange has authenticated."""

    name: str
    expires_ms: int | None = None
    """The credential's expiry, in milliseconds since 1970; None if it doesn't expire."""
    by_token: bool = False
    """True if a delegation token authenticated the user."""


class ExchangeStep(NamedTuple):
    """The answer to a client's message, and the client's identity once it is authenticated."""

    answer: bytes | None
    """The answer; None if the mechanism has no more messages. (An old client, whose messages have no header, then gets
    no message.)"""
    identity: ProvenIdentity | None = None
    refusal: str = ""
    """The reason, for the log, if the answer is a rejection that the client must acknowledge before the failure."""


class ServerExchange(Protocol):
    """A client's exchange in a mechanism (javax.security.sasl.SaslServer)."""

    def step(self, message: bytes) -> ExchangeStep:
        """Processes the client's next message. Raises SaslError."""
        ...
