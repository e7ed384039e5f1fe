"""GetTelemetrySubscriptions (71): tells a client which of its metrics to push, and how often (KIP-714)."""

from __future__ import annotations

from typing import Final

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.request.authorisation import PUBLIC
from protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from protocol.records.compression import Compression

CODECS: Final = [int(codec) for codec in (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)]
"""The compression types that a client may use, the best first."""


async def get_telemetry_subscriptions(
    call: Call[GetTelemetrySubscriptionsRequest],
) -> GetTelemetrySubscriptionsResponse:
    instance = call.broker.telemetry.subscribe(call.request.client_instance_id, call.context)
    return GetTelemetrySubscriptionsResponse(
        error_code=0,
        client_instance_id=instance.instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=CODECS,
        push_interval_ms=instance.requested.interval_ms,
        telemetry_max_bytes=call.broker.config.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=list(instance.requested.metrics),
    )


API = Api(
    GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse, get_telemetry_subscriptions, authorize=PUBLIC
)
