"""DescribeDelegationToken (41)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.DESCRIBE_DELEGATION_TOKEN)
class DescribeDelegationTokenRequest:
    """Requests the delegation tokens of owners. Null owners request all."""

    owners: list[DescribeDelegationTokenOwner] | None = wire(nullable="0+")


@struct
class DescribeDelegationTokenOwner:
    principal_type: str = wire()
    principal_name: str = wire()


@message(ApiKey.DESCRIBE_DELEGATION_TOKEN)
class DescribeDelegationTokenResponse:
    """The tokens, with owner, requester and renewers."""

    error_code: int16 = wire()
    tokens: list[DescribedDelegationToken] = wire()
    throttle_time_ms: int32 = wire(default=0)


@struct
class DescribedDelegationToken:
    """A token, its key (only if the client may act as the owner), and dates in milliseconds since 1970."""

    principal_type: str = wire()
    principal_name: str = wire()
    token_requester_principal_type: str = wire(versions="3+", default="")  # KIP-373
    token_requester_principal_name: str = wire(versions="3+", default="")  # KIP-373
    issue_timestamp: int64 = wire()
    expiry_timestamp: int64 = wire()
    max_timestamp: int64 = wire()
    token_id: str = wire()
    hmac: bytes = wire()
    renewers: list[DescribedDelegationTokenRenewer] = wire()


@struct
class DescribedDelegationTokenRenewer:
    principal_type: str = wire()
    principal_name: str = wire()
