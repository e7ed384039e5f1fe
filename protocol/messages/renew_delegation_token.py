"""RenewDelegationToken (39)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16, int32, int64


@message(ApiKey.RENEW_DELEGATION_TOKEN)
class RenewDelegationTokenRequest:
    """Extends a delegation token's expiry."""

    hmac: bytes = wire()
    renew_period_ms: int64 = wire()


@message(ApiKey.RENEW_DELEGATION_TOKEN)
class RenewDelegationTokenResponse:
    """The token's new expiry."""

    error_code: int16 = wire()
    expiry_timestamp_ms: int64 = wire()
    throttle_time_ms: int32 = wire(default=0)
