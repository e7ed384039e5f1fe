"""PushTelemetry (72): receives a client's metrics (KIP-714)."""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.request.authorisation import PUBLIC
from protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


async def push_telemetry(call: Call[PushTelemetryRequest]) -> PushTelemetryResponse:
    request = call.request
    await call.broker.telemetry.push(
        request.client_instance_id,
        request.subscription_id,
        request.compression_type,
        bytes(request.metrics),
        call.context,
        is_last=request.terminating,
    )
    return PushTelemetryResponse(error_code=0)


API = Api(PushTelemetryRequest, PushTelemetryResponse, push_telemetry, authorize=PUBLIC)
