"""SASL GSSAPI: a security context from a Kerberos ticket, then the agreement on no security layer (RFC 4752).

A library supplies the security context; this module orders the messages.
Source: com.sun.security.sasl.gsskerb.GssKrb5Server, org.apache.kafka.common.security.authenticator.
SaslServerCallbackHandler.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, Protocol

from protocol.sasl.exchange import ExchangeStep, ProvenIdentity, SaslError

INITIAL_TOKEN_TAG: Final = 0x60
"""The first byte of a client's first token (RFC 2743, 3.1). No Kafka request begins with this byte."""

NO_LAYER: Final = b"\x01\x00\x00\x00"
"""The broker's offer: no security layer, and so a maximum size of 0."""


class EstablishedContext(NamedTuple):
    """A context that a client's token has established."""

    answer: bytes
    """The token that authenticates the broker; empty if the client requests none."""
    principal: str
    """The client's principal."""
    expires_ms: int | None = None
    """The ticket's expiry, which ends the session, in milliseconds since 1970; None if it doesn't expire."""


class SecurityContext(Protocol):
    """The accepting side of a security context (RFC 2743). Raises SaslError for an invalid message."""

    def accept(self, token: bytes) -> EstablishedContext:
        """Processes the client's token. Kerberos needs only one token."""
        ...

    def wrap(self, message: bytes) -> bytes: ...
    def unwrap(self, message: bytes) -> bytes: ...


class Stage(Enum):
    """The stage of an exchange: the client message that it expects next."""

    TOKEN = "a token"
    ACKNOWLEDGEMENT = "an empty message"
    """The client's empty message, which acknowledges the broker's token."""
    CHOICE = "the choice of a security layer"
    OVER = "none"


class GssapiServer:
    """The broker's side of an exchange. An invalid message ends the exchange for good."""

    def __init__(self, context: SecurityContext, name: Callable[[str], str]) -> None:
        """`name` maps a principal to a user name, or raises SaslError."""
        self._context = context
        self._name = name
        self._stage = Stage.TOKEN
        self._accepted: EstablishedContext | None = None

    def step(self, message: bytes) -> ExchangeStep:
        """Processes the client's next message. Raises SaslError."""
        stage, self._stage = self._stage, Stage.OVER
        if stage is Stage.TOKEN:
            return self._accept(message)
        if stage is Stage.ACKNOWLEDGEMENT and not message:
            return self._offer()
        if stage is Stage.CHOICE:
            return self._end(message)
        raise SaslError(f"a message of {len(message)} bytes where {stage.value} is expected")

    def _accept(self, token: bytes) -> ExchangeStep:
        self._accepted = self._context.accept(token)
        if not self._accepted.answer:
            return self._offer()
        self._stage = Stage.ACKNOWLEDGEMENT
        return ExchangeStep(self._accepted.answer)

    def _offer(self) -> ExchangeStep:
        self._stage = Stage.CHOICE
        return ExchangeStep(self._context.wrap(NO_LAYER))

    def _end(self, message: bytes) -> ExchangeStep:
        """Checks the security layer that the client chooses. Like Apache Kafka, ignores the authorization id after it:
        the ticket names the client, and librdkafka sends a name from its configuration."""
        choice = self._context.unwrap(message)
        if len(choice) < len(NO_LAYER) or choice[0] != NO_LAYER[0]:
            raise SaslError("the client chooses a security layer that it was not offered")
        assert self._accepted is not None, "the context was established before anything was offered"
        return ExchangeStep(None, ProvenIdentity(self._name(self._accepted.principal), self._accepted.expires_ms))
