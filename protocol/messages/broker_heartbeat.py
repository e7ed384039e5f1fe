"""BrokerHeartbeat (63)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, wire
from protocol.types import int16, int32, int64, uuid


@message(ApiKey.BROKER_HEARTBEAT)
class BrokerHeartbeatRequest:
    """A broker's heartbeat to the controller, with its metadata offset, and its wish to be fenced or to stop
    (KIP-631)."""

    broker_id: int32 = wire()
    broker_epoch: int64 = wire(default=-1)
    current_metadata_offset: int64 = wire()
    want_fence: bool = wire()
    want_shut_down: bool = wire()
    offline_log_dirs: list[uuid] = wire(versions="1+", tag=0, default=IMPLICIT)  # KIP-858
    cordoned_log_dirs: list[uuid] | None = wire(versions="2+", nullable="2+", tag=1, default=None)  # KIP-1066


@message(ApiKey.BROKER_HEARTBEAT)
class BrokerHeartbeatResponse:
    """Flags for the broker: it is caught up, is fenced, may stop."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    is_caught_up: bool = wire(default=False)
    is_fenced: bool = wire(default=True)
    should_shut_down: bool = wire()
