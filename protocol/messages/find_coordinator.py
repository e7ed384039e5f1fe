"""FindCoordinator (10)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.FIND_COORDINATOR)
class FindCoordinatorRequest:
    """Requests the coordinator of groups, transactional ids or share partitions."""

    key: str = wire(versions="0-3", default="")
    key_type: int8 = wire(versions="1+", default=0)  # KIP-98
    coordinator_keys: list[str] = wire(versions="4+", default=IMPLICIT)  # KIP-699


@message(ApiKey.FIND_COORDINATOR)
class FindCoordinatorResponse:
    """The requested coordinators: a single coordinator up to version 3, then a list."""

    throttle_time_ms: int32 = wire(versions="1+", default=0)  # KIP-98
    error_code: int16 = wire(versions="0-3", default=0)
    error_message: str | None = wire(versions="1-3", nullable="1-3", default=None)  # KIP-98
    node_id: int32 = wire(versions="0-3", default=0)
    host: str = wire(versions="0-3", default="")
    port: int32 = wire(versions="0-3", default=0)
    coordinators: list[Coordinator] = wire(versions="4+", default=IMPLICIT)  # KIP-699


@struct
class Coordinator:
    """The coordinator of a key, or node -1 with an error."""

    key: str = wire()
    node_id: int32 = wire()
    host: str = wire()
    port: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
