"""LeaveGroup (13)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.LEAVE_GROUP)
class LeaveGroupRequest:
    """Members leave a classic group, which then rebalances without them."""

    group_id: str = wire()
    member_id: str = wire(versions="0-2", default="")
    members: list[MemberIdentity] = wire(versions="3+", default=IMPLICIT)  # KIP-345


@struct
class MemberIdentity:
    """A member by its id, or by its static instance id with an empty member id."""

    member_id: str = wire()
    group_instance_id: str | None = wire(nullable="0+", default=None)
    reason: str | None = wire(versions="5+", nullable="5+", default=None)  # KIP-800


@message(ApiKey.LEAVE_GROUP)
class LeaveGroupResponse:
    """The error code for each member."""

    throttle_time_ms: int32 = wire(versions="1+", default=0)  # KIP-124
    error_code: int16 = wire()
    members: list[MemberResponse] = wire(versions="3+", default=IMPLICIT)  # KIP-345


@struct
class MemberResponse:
    member_id: str = wire()
    group_instance_id: str | None = wire(nullable="0+")
    error_code: int16 = wire()
