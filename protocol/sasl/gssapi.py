"""SASL GSSAPI: a security context by a ticket of Kerberos, then the agreement that nothing is wrapped in it (RFC 4752).

What a context is is for a library to say, and is handed in; here is the order of messages.
Source: com.sun.security.sasl.gsskerb.GssKrb5Server, org.apache.kafka.common.security.authenticator.
SaslServerCallbackHandler.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, Protocol

from protocol.sasl.exchange import ExchangeStep, ProvenIdentity, SaslError

INITIAL_TOKEN_TAG: Final = 0x60
"""The first byte of a client's first token (RFC 2743, 3.1), which no request of Kafka's begins with."""

NO_LAYER: Final = b"\x01\x00\x00\x00"
"""The offer: no security layer, and so no size of what would be wrapped in one."""


class EstablishedContext(NamedTuple):
    """A context that a client's token has established."""

    answer: bytes
    """The token that proves this side; empty where the client asks for none."""
    principal: str
    """The client's."""
    expires_ms: int | None = None
    """When its session ends with its ticket, in milliseconds since 1970; None where it does not."""


class SecurityContext(Protocol):
    """The side of a context that accepts (RFC 2743). A message that is wrong raises SaslError."""

    def accept(self, token: bytes) -> EstablishedContext:
        """Takes the client's token; of Kerberos it is one."""
        ...

    def wrap(self, message: bytes) -> bytes: ...
    def unwrap(self, message: bytes) -> bytes: ...


class Stage(Enum):
    """How far an exchange is: what the client's next message has to be."""

    TOKEN = "a token"
    ACKNOWLEDGEMENT = "an empty message"
    """It has our last token, and acknowledges it."""
    CHOICE = "the choice of a security layer"
    OVER = "none"


class GssapiServer:
    """The broker's side of one exchange. A message at fault ends it, whatever follows."""

    def __init__(self, context: SecurityContext, name: Callable[[str], str]) -> None:
        """`name` gives a principal its name, and raises SaslError for one that has none."""
        self._context = context
        self._name = name
        self._stage = Stage.TOKEN
        self._accepted: EstablishedContext | None = None

    def step(self, message: bytes) -> ExchangeStep:
        """Takes the client's next message. Raises SaslError."""
        stage, self._stage = self._stage, Stage.OVER
        if stage is Stage.TOKEN:
            return self._accept(message)
        if stage is Stage.ACKNOWLEDGEMENT and not message:
            return self._offer()
        if stage is Stage.CHOICE:
            return self._end(message)
        raise SaslError(f"a message of {len(message)} bytes where {stage.value} is due")

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
        """Takes the layer that the client chooses. Whom it would be comes after that, and is passed over as by Apache
        Kafka: it is who its ticket says, and librdkafka sends the name of its configuration."""
        choice = self._context.unwrap(message)
        if len(choice) < len(NO_LAYER) or choice[0] != NO_LAYER[0]:
            raise SaslError("the client chooses a security layer that it was not offered")
        assert self._accepted is not None, "the context was established before anything was offered"
        return ExchangeStep(None, ProvenIdentity(self._name(self._accepted.principal), self._accepted.expires_ms))
