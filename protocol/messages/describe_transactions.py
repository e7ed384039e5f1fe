"""DescribeTransactions (65)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.DESCRIBE_TRANSACTIONS)
class DescribeTransactionsRequest:
    """Requests from coordinators the state of transactions (KIP-664)."""

    transactional_ids: list[str] = wire()


@message(ApiKey.DESCRIBE_TRANSACTIONS)
class DescribeTransactionsResponse:
    """State, timeout, start and partitions of each transaction."""

    throttle_time_ms: int32 = wire(default=0)
    transaction_states: list[TransactionState] = wire()


@struct
class TransactionState:
    """A transaction. The start time is -1 if it is not open."""

    error_code: int16 = wire()
    transactional_id: str = wire()
    transaction_state: str = wire()
    transaction_timeout_ms: int32 = wire()
    transaction_start_time_ms: int64 = wire()
    producer_id: int64 = wire()
    producer_epoch: int16 = wire()
    topics: list[TopicData] = wire()


@struct
class TopicData:
    topic: str = wire()
    partitions: list[int32] = wire()
