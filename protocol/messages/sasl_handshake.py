"""SaslHandshake (17)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16


@message(ApiKey.SASL_HANDSHAKE)
class SaslHandshakeRequest:
    """A client selects its SASL mechanism."""

    mechanism: str = wire()


@message(ApiKey.SASL_HANDSHAKE)
class SaslHandshakeResponse:
    """An error code, and the enabled mechanisms."""

    error_code: int16 = wire()
    mechanisms: list[str] = wire()
