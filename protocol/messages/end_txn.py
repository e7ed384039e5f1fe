"""EndTxn (26)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16, int32, int64


@message(ApiKey.END_TXN)
class EndTxnRequest:
    """A producer commits or aborts its transaction."""

    transactional_id: str = wire()
    producer_id: int64 = wire()
    producer_epoch: int16 = wire()
    committed: bool = wire()


@message(ApiKey.END_TXN)
class EndTxnResponse:
    """The error code, and since version 5 the bumped epoch."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    producer_id: int64 = wire(versions="5+", default=-1)  # KIP-890
    producer_epoch: int16 = wire(versions="5+", default=-1)  # KIP-890
