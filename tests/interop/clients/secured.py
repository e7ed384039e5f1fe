"""The interface of a client to the security matrix: it connects, produces and consumes, or is rejected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

PATIENCE_S = 12
"""Time after which a client that gets no error counts as rejected."""


class Access(NamedTuple):
    """The settings with which a client connects."""

    address: str
    protocol: str
    """SSL, SASL_SSL or SASL_PLAINTEXT."""
    authority: Path
    """The authority whose certificates the client trusts."""
    certificate: Path | None = None
    """The client's certificate, with its key."""
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: Path | None = None
    """The file with the client's token, for OAUTHBEARER."""

    @property
    def has_tls(self) -> bool:
        return self.protocol != "SASL_PLAINTEXT"

    def token_text(self) -> str:
        assert self.token is not None, "OAUTHBEARER has a token"
        return self.token.read_text()


class Refused(Exception):
    """A client was not authenticated, or is not authorized. The text is the client's error message."""


class SecuredClient(Protocol):
    """A client library. All methods use partition 0 of a topic."""

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        """Writes the values. Raises Refused."""
        ...

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        """Reads this number of values from the start. Raises Refused."""
        ...

    def close(self) -> None:
        """Ends the client's processes."""
        ...
