"""DescribeGroups (15)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.DESCRIBE_GROUPS)
class DescribeGroupsRequest:
    """Requests the state and members of classic groups."""

    groups: list[str] = wire()
    include_authorized_operations: bool = wire(versions="3+", default=False)  # KIP-430


@message(ApiKey.DESCRIBE_GROUPS)
class DescribeGroupsResponse:
    """State, protocol and members of each group."""

    throttle_time_ms: int32 = wire(versions="1+", default=0)  # KIP-124
    groups: list[DescribedGroup] = wire()


@struct
class DescribedGroup:
    """A group. Its authorized operations are bits by ACL code, or the smallest int32 if not requested."""

    error_code: int16 = wire()
    error_message: str | None = wire(versions="6+", nullable="6+", default=None)  # KIP-1043
    group_id: str = wire()
    group_state: str = wire()
    protocol_type: str = wire()
    protocol_data: str = wire()
    members: list[DescribedGroupMember] = wire()
    authorized_operations: int32 = wire(versions="3+", default=-0x80000000)  # KIP-430


@struct
class DescribedGroupMember:
    member_id: str = wire()
    group_instance_id: str | None = wire(versions="4+", nullable="4+", default=None)  # KIP-345
    client_id: str = wire()
    client_host: str = wire()
    member_metadata: bytes = wire()
    member_assignment: bytes = wire()
