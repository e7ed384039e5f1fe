"""SaslAuthenticate (36)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16, int64


@message(ApiKey.SASL_AUTHENTICATE)
class SaslAuthenticateRequest:
    """A client's message of a SASL exchange."""

    auth_bytes: bytes = wire()


@message(ApiKey.SASL_AUTHENTICATE)
class SaslAuthenticateResponse:
    """A broker's message of a SASL exchange, and the session's lifetime."""

    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    auth_bytes: bytes = wire()
    session_lifetime_ms: int64 = wire(versions="1+", default=0)  # KIP-368
