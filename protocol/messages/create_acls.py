"""CreateAcls (30)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.CREATE_ACLS)
class CreateAclsRequest:
    """Access control entries to add."""

    creations: list[AclCreation] = wire()


@struct
class AclCreation:
    """An entry. Pattern type: 3 literal, 4 prefixed. Principal: `User:name`. Host: an address or *."""

    resource_type: int8 = wire()
    resource_name: str = wire()
    resource_pattern_type: int8 = wire(versions="1+", default=3)  # KIP-290
    principal: str = wire()
    host: str = wire()
    operation: int8 = wire()
    permission_type: int8 = wire()


@message(ApiKey.CREATE_ACLS)
class CreateAclsResponse:
    """The error code for each entry."""

    throttle_time_ms: int32 = wire(default=0)
    results: list[AclCreationResult] = wire()


@struct
class AclCreationResult:
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
