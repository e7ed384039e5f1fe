"""An exchange of SASL messages from the broker's side, whatever the mechanism."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class SaslError(Exception):
    """The client is not who it says, or says it wrongly. `reason` is for the log alone, unless `may_be_told`: what a
    stranger is told says nothing of which users there are."""

    def __init__(self, reason: str, *, may_be_told: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.may_be_told = may_be_told


class ProvenIdentity(NamedTuple):
    """Whom an exchange has proven."""

    name: str
    expires_ms: int | None = None
    """When the credential ends, in milliseconds since 1970; None for one that does not."""


class ExchangeStep(NamedTuple):
    """The answer to a message of the client's, and who it is once that is proven."""

    answer: bytes
    identity: ProvenIdentity | None = None


class ServerExchange(Protocol):
    """One client's exchange in one mechanism (javax.security.sasl.SaslServer)."""

    def step(self, message: bytes) -> ExchangeStep:
        """Takes the client's next message. Raises SaslError."""
        ...
