"""GetTelemetrySubscriptions (71)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int8, int16, int32, uuid


@message(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS)
class GetTelemetrySubscriptionsRequest:
    """A client requests its telemetry subscription (KIP-714)."""

    client_instance_id: uuid = wire()


@message(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS)
class GetTelemetrySubscriptionsResponse:
    """The requested metrics, the push interval, and the accepted compression."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    client_instance_id: uuid = wire()
    subscription_id: int32 = wire()
    accepted_compression_types: list[int8] = wire()
    push_interval_ms: int32 = wire()
    telemetry_max_bytes: int32 = wire()
    delta_temporality: bool = wire()
    requested_metrics: list[str] = wire()
