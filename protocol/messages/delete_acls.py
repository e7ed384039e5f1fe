"""DeleteAcls (31)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.DELETE_ACLS)
class DeleteAclsRequest:
    """Filters of access control entries. Every matching entry is deleted."""

    filters: list[DeleteAclsFilter] = wire()


@struct
class DeleteAclsFilter:
    """A filter of entries: 1 matches any type or operation, null any name; pattern type 2 matches as a request
    would."""

    resource_type_filter: int8 = wire()
    resource_name_filter: str | None = wire(nullable="0+")
    pattern_type_filter: int8 = wire(versions="1+", default=3)  # KIP-290
    principal_filter: str | None = wire(nullable="0+")
    host_filter: str | None = wire(nullable="0+")
    operation: int8 = wire()
    permission_type: int8 = wire()


@message(ApiKey.DELETE_ACLS)
class DeleteAclsResponse:
    """The entries that each filter deleted."""

    throttle_time_ms: int32 = wire(default=0)
    filter_results: list[DeleteAclsFilterResult] = wire()


@struct
class DeleteAclsFilterResult:
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = wire()


@struct
class DeleteAclsMatchingAcl:
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    resource_type: int8 = wire()
    resource_name: str = wire()
    pattern_type: int8 = wire(versions="1+", default=3)  # KIP-290
    principal: str = wire()
    host: str = wire()
    operation: int8 = wire()
    permission_type: int8 = wire()
