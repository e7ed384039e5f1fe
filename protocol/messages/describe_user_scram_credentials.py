"""DescribeUserScramCredentials (50)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
class DescribeUserScramCredentialsRequest:
    """Requests the mechanisms of users' SCRAM credentials. Null users request all (KIP-554)."""

    users: list[UserName] | None = wire(nullable="0+")


@struct
class UserName:
    name: str = wire()


@message(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
class DescribeUserScramCredentialsResponse:
    """Mechanisms and iterations by user; never the keys."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = wire()


@struct
class DescribeUserScramCredentialsResult:
    user: str = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    credential_infos: list[CredentialInfo] = wire()


@struct
class CredentialInfo:
    mechanism: int8 = wire()
    iterations: int32 = wire()
