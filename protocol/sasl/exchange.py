"""An exchange of SASL messages from the broker's side, whatever the mechanism."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class SaslError(Exception):
    """The client is not who it says, or says it wrongly. `reason` is for the log alone, unless `may_be_told`: what a
    stranger is told says nothing of which users there are. `client_message` is what it is sent in its place."""

    def __init__(self, reason: str, *, may_be_told: bool = False, client_message: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.client_message = reason if may_be_told else client_message

    @property
    def may_be_told(self) -> bool:
        """True where the client is told more than that it failed."""
        return self.client_message is not None


class ProvenIdentity(NamedTuple):
    """Whom an exchange has proven."""

    name: str
    expires_ms: int | None = None
    """When the credential ends, in milliseconds since 1970; None for one that does not."""
    by_token: bool = False
    """Whether it was proven by a delegation token."""


class ExchangeStep(NamedTuple):
    """The answer to a message of the client's, and who it is once that is proven."""

    answer: bytes | None
    """None where the mechanism has nothing more to say: an old client, which is sent messages without a header, is sent
    none."""
    identity: ProvenIdentity | None = None
    refusal: str = ""
    """Why the answer refuses, where it does and the client has to acknowledge it first; for the log."""


class ServerExchange(Protocol):
    """One client's exchange in one mechanism (javax.security.sasl.SaslServer)."""

    def step(self, message: bytes) -> ExchangeStep:
        """Takes the client's next message. Raises SaslError."""
        ...
