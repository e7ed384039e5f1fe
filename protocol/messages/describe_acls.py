"""DescribeAcls (29)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.DESCRIBE_ACLS)
class DescribeAclsRequest:
    """Requests the access control entries that match a filter."""

    resource_type_filter: int8 = wire()
    resource_name_filter: str | None = wire(nullable="0+")
    pattern_type_filter: int8 = wire(versions="1+", default=3)  # KIP-290
    principal_filter: str | None = wire(nullable="0+")
    host_filter: str | None = wire(nullable="0+")
    operation: int8 = wire()
    permission_type: int8 = wire()


@message(ApiKey.DESCRIBE_ACLS)
class DescribeAclsResponse:
    """Matching entries, by resource."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    resources: list[DescribeAclsResource] = wire()


@struct
class DescribeAclsResource:
    resource_type: int8 = wire()
    resource_name: str = wire()
    pattern_type: int8 = wire(versions="1+", default=3)  # KIP-290
    acls: list[AclDescription] = wire()


@struct
class AclDescription:
    """The principal and host that an entry allows (permission 3) or denies (2) the operation."""

    principal: str = wire()
    host: str = wire()
    operation: int8 = wire()
    permission_type: int8 = wire()
