"""Classic groups in __consumer_offsets."""

from __future__ import annotations

from protocol.schema import struct, versioned, wire
from protocol.types import int32, int64


@versioned(2, versions="0")
class GroupMetadataKey:
    """The key of a classic group."""

    group: str = wire()


@versioned(2, versions="0-4", flexible="4+")
class GroupMetadataValue:
    """A classic group's generation and members. Protocol and leader are null while the group is empty."""

    protocol_type: str = wire()
    generation: int32 = wire()
    protocol: str | None = wire(nullable="0+")
    leader: str | None = wire(nullable="0+")
    current_state_timestamp: int64 = wire(versions="2+", default=-1)
    members: list[MemberMetadata] = wire()


@struct
class MemberMetadata:
    member_id: str = wire()
    group_instance_id: str | None = wire(versions="3+", nullable="3+", default=None)
    client_id: str = wire()
    client_host: str = wire()
    rebalance_timeout: int32 = wire(versions="1+", default=-1)
    session_timeout: int32 = wire()
    subscription: bytes = wire()
    assignment: bytes = wire()
