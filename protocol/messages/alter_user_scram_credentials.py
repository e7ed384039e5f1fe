"""AlterUserScramCredentials (51)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
class AlterUserScramCredentialsRequest:
    """Sets and removes users' SCRAM credentials (KIP-554)."""

    deletions: list[ScramCredentialDeletion] = wire()
    upsertions: list[ScramCredentialUpsertion] = wire()


@struct
class ScramCredentialDeletion:
    """A credential to remove: mechanism 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512."""

    name: str = wire()
    mechanism: int8 = wire()


@struct
class ScramCredentialUpsertion:
    """A new credential: mechanism 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512; the client salted and hashed the password."""

    name: str = wire()
    mechanism: int8 = wire()
    iterations: int32 = wire()
    salt: bytes = wire()
    salted_password: bytes = wire()


@message(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
class AlterUserScramCredentialsResponse:
    """The error code for each user."""

    throttle_time_ms: int32 = wire(default=0)
    results: list[AlterUserScramCredentialsResult] = wire()


@struct
class AlterUserScramCredentialsResult:
    user: str = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
