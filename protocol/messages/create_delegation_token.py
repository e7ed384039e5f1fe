"""CreateDelegationToken (38)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.CREATE_DELEGATION_TOKEN)
class CreateDelegationTokenRequest:
    """Creates a delegation token, with which clients authenticate as its owner (KIP-48)."""

    owner_principal_type: str | None = wire(versions="3+", nullable="3+", default=None)  # KIP-373
    owner_principal_name: str | None = wire(versions="3+", nullable="3+", default=None)  # KIP-373
    renewers: list[CreatableRenewers] = wire()
    max_lifetime_ms: int64 = wire()


@struct
class CreatableRenewers:
    principal_type: str = wire()
    principal_name: str = wire()


@message(ApiKey.CREATE_DELEGATION_TOKEN)
class CreateDelegationTokenResponse:
    """The token's id, key and dates."""

    error_code: int16 = wire()
    principal_type: str = wire()
    principal_name: str = wire()
    token_requester_principal_type: str = wire(versions="3+", default="")  # KIP-373
    token_requester_principal_name: str = wire(versions="3+", default="")  # KIP-373
    issue_timestamp_ms: int64 = wire()
    expiry_timestamp_ms: int64 = wire()
    max_timestamp_ms: int64 = wire()
    token_id: str = wire()
    hmac: bytes = wire()
    throttle_time_ms: int32 = wire(default=0)
