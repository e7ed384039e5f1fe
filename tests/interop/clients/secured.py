"""The interface of a client to the security matrix: it is told how to get in, produces, consumes, or is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

PATIENCE_S = 12
"""How long a client may try before it is taken for refused without a word."""


class Access(NamedTuple):
    """How a client gets in."""

    address: str
    protocol: str
    """SSL, SASL_SSL or SASL_PLAINTEXT."""
    authority: Path
    """The authority whose certificates it trusts."""
    certificate: Path | None = None
    """Its own certificate, with the key."""
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: Path | None = None
    """The file of its token, for OAUTHBEARER."""

    @property
    def has_tls(self) -> bool:
        return self.protocol != "SASL_PLAINTEXT"

    def token_text(self) -> str:
        assert self.token is not None, "OAUTHBEARER has a token"
        return self.token.read_text()


class Refused(Exception):
    """A client was not let in, or may not do it. Has the client's words."""


class SecuredClient(Protocol):
    """A client library. Everything is about partition 0 of a topic."""

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        """Writes the values. Raises Refused."""
        ...

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        """Reads as many values from the start. Raises Refused."""
        ...

    def close(self) -> None:
        """Lets go of processes."""
        ...
