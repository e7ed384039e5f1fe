"""SyncGroup (14)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.SYNC_GROUP)
class SyncGroupRequest:
    """The group's leader sends all members' assignments; other members request theirs."""

    group_id: str = wire()
    generation_id: int32 = wire()
    member_id: str = wire()
    group_instance_id: str | None = wire(versions="3+", nullable="3+", default=None)  # KIP-345
    protocol_type: str | None = wire(versions="5+", nullable="5+", default=None)  # KIP-559
    protocol_name: str | None = wire(versions="5+", nullable="5+", default=None)  # KIP-559
    assignments: list[SyncGroupRequestAssignment] = wire()


@struct
class SyncGroupRequestAssignment:
    member_id: str = wire()
    assignment: bytes = wire()


@message(ApiKey.SYNC_GROUP)
class SyncGroupResponse:
    """The member's own assignment, opaque to the broker."""

    throttle_time_ms: int32 = wire(versions="1+", default=0)  # KIP-124
    error_code: int16 = wire()
    protocol_type: str | None = wire(versions="5+", nullable="5+", default=None)  # KIP-559
    protocol_name: str | None = wire(versions="5+", nullable="5+", default=None)  # KIP-559
    assignment: bytes = wire()
