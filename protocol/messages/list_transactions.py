"""ListTransactions (66)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.LIST_TRANSACTIONS)
class ListTransactionsRequest:
    """Requests the transactions of this coordinator that match (KIP-664)."""

    state_filters: list[str] = wire()
    producer_id_filters: list[int64] = wire()
    duration_filter: int64 = wire(versions="1+", default=-1)  # KIP-994
    transactional_id_pattern: str | None = wire(versions="2+", nullable="2+", default=None)  # KIP-1152


@message(ApiKey.LIST_TRANSACTIONS)
class ListTransactionsResponse:
    """Transactional ids with producer id and state."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    unknown_state_filters: list[str] = wire()
    transaction_states: list[TransactionState] = wire()


@struct
class TransactionState:
    transactional_id: str = wire()
    producer_id: int64 = wire()
    transaction_state: str = wire()
