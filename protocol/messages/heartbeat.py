"""Heartbeat (12)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16, int32


@message(ApiKey.HEARTBEAT)
class HeartbeatRequest:
    """A heartbeat of a classic group's member."""

    group_id: str = wire()
    generation_id: int32 = wire()
    member_id: str = wire()
    group_instance_id: str | None = wire(versions="3+", nullable="3+", default=None)  # KIP-345


@message(ApiKey.HEARTBEAT)
class HeartbeatResponse:
    """An error code, by which the member stays, rejoins, or is fenced."""

    throttle_time_ms: int32 = wire(versions="1+", default=0)  # KIP-124
    error_code: int16 = wire()
