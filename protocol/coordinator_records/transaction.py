"""Transactions in __transaction_state."""

from __future__ import annotations

from protocol.schema import struct, versioned, wire
from protocol.types import int8, int16, int32, int64


@versioned(0, versions="0")
class TransactionLogKey:
    """The key of a transactional id's state."""

    transactional_id: str = wire()


@versioned(0, versions="0-1", flexible="1+")
class TransactionLogValue:
    """A transactional id's producer and transaction. Status: 0 empty, 1 ongoing, 2 prepare commit, 3 prepare abort, 4
    complete commit, 5 complete abort, 6 dead, 7 prepare epoch fence."""

    producer_id: int64 = wire()
    previous_producer_id: int64 = wire(versions="1+", tag=0, default=-1)  # KIP-890
    next_producer_id: int64 = wire(versions="1+", tag=1, default=-1)  # KIP-890
    producer_epoch: int16 = wire()
    next_producer_epoch: int16 = wire(versions="1+", tag=3, default=-1)  # KIP-890
    transaction_timeout_ms: int32 = wire()
    transaction_status: int8 = wire()
    transaction_partitions: list[PartitionsSchema] | None = wire(nullable="0+")
    transaction_last_update_timestamp_ms: int64 = wire()
    transaction_start_timestamp_ms: int64 = wire()
    client_transaction_version: int16 = wire(versions="1+", tag=2, default=0)  # KIP-890


@struct
class PartitionsSchema:
    topic: str = wire()
    partition_ids: list[int32] = wire()
