"""InitProducerId (22)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16, int32, int64


@message(ApiKey.INIT_PRODUCER_ID)
class InitProducerIdRequest:
    """An idempotent or transactional producer requests its producer id and epoch."""

    transactional_id: str | None = wire(nullable="0+")
    transaction_timeout_ms: int32 = wire()
    producer_id: int64 = wire(versions="3+", default=-1)  # KIP-360
    producer_epoch: int16 = wire(versions="3+", default=-1)  # KIP-360


@message(ApiKey.INIT_PRODUCER_ID)
class InitProducerIdResponse:
    """The producer id and the epoch that fences its predecessors."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    producer_id: int64 = wire(default=-1)
    producer_epoch: int16 = wire()
