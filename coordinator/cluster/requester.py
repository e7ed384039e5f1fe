"""The client for which a broker sends a request to the controller."""

from __future__ import annotations

from typing import NamedTuple


class Requester(NamedTuple):
    """The client that sent a request: its principal, id and address."""

    kind: str
    name: str
    client_id: str | None
    host: str
    """An IPv4 or IPv6 address."""
    by_token: bool = False
    """True if the client authenticated with a delegation token."""

    @property
    def principal(self) -> str:
        """The principal as text, such as User:alice."""
        return f"{self.kind}:{self.name}"
