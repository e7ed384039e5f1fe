"""Envelope (58)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16


@message(ApiKey.ENVELOPE)
class EnvelopeRequest:
    """A request that a broker forwards to the controller, with the principal it came from (KIP-590)."""

    request_data: bytes = wire()
    request_principal: bytes | None = wire(nullable="0+")
    client_host_address: bytes = wire()


@message(ApiKey.ENVELOPE)
class EnvelopeResponse:
    """The response to return to the client, including its header."""

    response_data: bytes | None = wire(nullable="0+", default=None)
    error_code: int16 = wire()
