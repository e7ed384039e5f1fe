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


class Initiator(NamedTuple):
    """Whom a context has proven."""

    principal: str
    expires_ms: int | None
    """When its session ends with its ticket, in milliseconds since 1970; None where it does not."""


class SecurityContext(Protocol):
    """The side of a context that accepts (RFC 2743). What is wrong with a token raises SaslError."""

    def accept(self, token: bytes) -> bytes:
        """Takes the client's next token; returns the answer, empty where there is none."""
        ...

    def initiator(self) -> Initiator | None:
        """Returns who the client is; None until the context is established."""
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
        answer = self._context.accept(token)
        if self._context.initiator() is None:
            self._stage = Stage.TOKEN
            return ExchangeStep(answer)
        if not answer:  # a client that asked for no proof of ours
            return self._offer()
        self._stage = Stage.ACKNOWLEDGEMENT
        return ExchangeStep(answer)

    def _offer(self) -> ExchangeStep:
        self._stage = Stage.CHOICE
        return ExchangeStep(self._context.wrap(NO_LAYER))

    def _end(self, message: bytes) -> ExchangeStep:
        """Takes the layer that the client chooses. Whom it would be comes after that, and is passed over as by Apache
        Kafka: it is who its ticket says, and librdkafka sends the name of its configuration."""
        choice = self._context.unwrap(message)
        if len(choice) < len(NO_LAYER) or choice[0] != NO_LAYER[0]:
            raise SaslError("the client chooses a security layer that it was not offered")
        initiator = self._context.initiator()
        assert initiator is not None, "the context was established before anything was offered"
        return ExchangeStep(None, ProvenIdentity(self._name(initiator.principal), initiator.expires_ms))
