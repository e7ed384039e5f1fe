"""ListGroups (16)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.LIST_GROUPS)
class ListGroupsRequest:
    """Requests the groups that this broker coordinates, by state and type."""

    states_filter: list[str] = wire(versions="4+", default=IMPLICIT)  # KIP-518
    types_filter: list[str] = wire(versions="5+", default=IMPLICIT)  # KIP-848


@message(ApiKey.LIST_GROUPS)
class ListGroupsResponse:
    """Group ids with protocol type, state and type."""

    throttle_time_ms: int32 = wire(versions="1+", default=0)  # KIP-124
    error_code: int16 = wire()
    groups: list[ListedGroup] = wire()


@struct
class ListedGroup:
    group_id: str = wire()
    protocol_type: str = wire()
    group_state: str = wire(versions="4+", default="")  # KIP-518
    group_type: str = wire(versions="5+", default="")  # KIP-848
