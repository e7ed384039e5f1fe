"""The principal inside an Envelope (KIP-590): two bytes of version, then this message."""

from __future__ import annotations

from protocol.messages.header import NO_API_KEY
from protocol.schema import versioned, wire


@versioned(NO_API_KEY, versions="0", flexible="0+")
class DefaultPrincipalData:
    """The principal of a forwarded request, as Kafka's own principal builder writes it."""

    type: str = wire()
    name: str = wire()
    token_authenticated: bool = wire()
