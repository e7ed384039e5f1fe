"""JoinGroup (11)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.JOIN_GROUP)
class JoinGroupRequest:
    """A member joins a classic group's rebalance, with its supported protocols."""

    group_id: str = wire()
    session_timeout_ms: int32 = wire()
    rebalance_timeout_ms: int32 = wire(versions="1+", default=-1)  # KIP-62
    member_id: str = wire()
    group_instance_id: str | None = wire(versions="5+", nullable="5+", default=None)  # KIP-345
    protocol_type: str = wire()
    protocols: list[JoinGroupRequestProtocol] = wire()
    reason: str | None = wire(versions="8+", nullable="8+", default=None)  # KIP-800


@struct
class JoinGroupRequestProtocol:
    """A protocol that the member supports, and its metadata for the group's leader."""

    name: str = wire()
    metadata: bytes = wire()


@message(ApiKey.JOIN_GROUP)
class JoinGroupResponse:
    """The new generation. The group's leader also gets the metadata of all members."""

    throttle_time_ms: int32 = wire(versions="2+", default=0)  # KIP-124
    error_code: int16 = wire()
    generation_id: int32 = wire(default=-1)
    protocol_type: str | None = wire(versions="7+", nullable="7+", default=None)  # KIP-559
    protocol_name: str | None = wire(nullable="7+")
    leader: str = wire()
    skip_assignment: bool = wire(versions="9+", default=False)  # KIP-814
    member_id: str = wire()
    members: list[JoinGroupResponseMember] = wire()


@struct
class JoinGroupResponseMember:
    """A member, with its metadata for the selected protocol."""

    member_id: str = wire()
    group_instance_id: str | None = wire(versions="5+", nullable="5+", default=None)  # KIP-345
    metadata: bytes = wire()
