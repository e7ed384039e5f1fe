"""DeleteGroups (42)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.DELETE_GROUPS)
class DeleteGroupsRequest:
    """Empty groups to delete, with their offsets."""

    groups_names: list[str] = wire()


@message(ApiKey.DELETE_GROUPS)
class DeleteGroupsResponse:
    """The error code for each group."""

    throttle_time_ms: int32 = wire(default=0)
    results: list[DeletableGroupResult] = wire()


@struct
class DeletableGroupResult:
    group_id: str = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(versions="3+", nullable="3+", default=None)  # KIP-1331
