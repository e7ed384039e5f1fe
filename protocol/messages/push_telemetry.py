"""PushTelemetry (72)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int8, int16, int32, uuid


@message(ApiKey.PUSH_TELEMETRY)
class PushTelemetryRequest:
    """A client's metrics, in OpenTelemetry's encoding (KIP-714)."""

    client_instance_id: uuid = wire()
    subscription_id: int32 = wire()
    terminating: bool = wire()
    compression_type: int8 = wire()
    metrics: bytes = wire()


@message(ApiKey.PUSH_TELEMETRY)
class PushTelemetryResponse:
    """The error code of the push."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
