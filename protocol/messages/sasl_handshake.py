"""SaslHandshake (17)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16


@message(ApiKey.SASL_HANDSHAKE, versions="0-1")
class SaslHandshakeRequest:
    """A client picks the SASL mechanism that it will authenticate with."""

    mechanism: str = wire()


@message(ApiKey.SASL_HANDSHAKE, versions="0-1")
class SaslHandshakeResponse:
    """The mechanisms that are enabled, when the chosen one is not."""

    error_code: int16 = wire()
    mechanisms: list[str] = wire()
