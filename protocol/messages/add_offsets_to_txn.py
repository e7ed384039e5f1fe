"""AddOffsetsToTxn (25)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16, int32, int64


@message(ApiKey.ADD_OFFSETS_TO_TXN)
class AddOffsetsToTxnRequest:
    """Adds a group's offsets partition to a transaction."""

    transactional_id: str = wire()
    producer_id: int64 = wire()
    producer_epoch: int16 = wire()
    group_id: str = wire()


@message(ApiKey.ADD_OFFSETS_TO_TXN)
class AddOffsetsToTxnResponse:
    """The error code of the addition."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
