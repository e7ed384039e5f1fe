"""AllocateProducerIds (67)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16, int32, int64


@message(ApiKey.ALLOCATE_PRODUCER_IDS)
class AllocateProducerIdsRequest:
    """A broker asks the controller for a block of producer ids (KIP-730)."""

    broker_id: int32 = wire()
    broker_epoch: int64 = wire(default=-1)


@message(ApiKey.ALLOCATE_PRODUCER_IDS)
class AllocateProducerIdsResponse:
    """The block: its first id and its length."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    producer_id_start: int64 = wire()
    producer_id_len: int32 = wire()
