"""UnregisterController (94)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16, int32


@message(ApiKey.UNREGISTER_CONTROLLER)
class UnregisterControllerRequest:
    """Removes a controller's registration from the cluster."""

    controller_id: int32 = wire()


@message(ApiKey.UNREGISTER_CONTROLLER)
class UnregisterControllerResponse:
    """The error code of the removal."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
