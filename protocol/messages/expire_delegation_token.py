"""ExpireDelegationToken (40)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16, int32, int64


@message(ApiKey.EXPIRE_DELEGATION_TOKEN)
class ExpireDelegationTokenRequest:
    """Changes a delegation token's expiry. A negative period expires the token immediately."""

    hmac: bytes = wire()
    expiry_time_period_ms: int64 = wire()


@message(ApiKey.EXPIRE_DELEGATION_TOKEN)
class ExpireDelegationTokenResponse:
    """The token's new expiry."""

    error_code: int16 = wire()
    expiry_timestamp_ms: int64 = wire()
    throttle_time_ms: int32 = wire(default=0)
