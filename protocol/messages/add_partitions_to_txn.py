"""AddPartitionsToTxn (24)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.ADD_PARTITIONS_TO_TXN)
class AddPartitionsToTxnRequest:
    """Adds partitions to transactions. Brokers use the batched form to verify transactions (KIP-890)."""

    transactions: list[AddPartitionsToTxnTransaction] = wire(versions="4+", default=IMPLICIT)  # KIP-890
    v3_and_below_transactional_id: str = wire(versions="0-3", default="")
    v3_and_below_producer_id: int64 = wire(versions="0-3", default=0)
    v3_and_below_producer_epoch: int16 = wire(versions="0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = wire(versions="0-3", default=IMPLICIT)


@struct
class AddPartitionsToTxnTransaction:
    """A transaction of a batch. With `verify_only`, checks that the partitions are in it, and adds none."""

    transactional_id: str = wire()
    producer_id: int64 = wire()
    producer_epoch: int16 = wire()
    verify_only: bool = wire(default=False)
    topics: list[AddPartitionsToTxnTopic] = wire()


@struct
class AddPartitionsToTxnTopic:
    name: str = wire()
    partitions: list[int32] = wire()


@message(ApiKey.ADD_PARTITIONS_TO_TXN)
class AddPartitionsToTxnResponse:
    """The error code for each partition, by transaction since version 4."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire(versions="4+", default=0)  # KIP-890
    results_by_transaction: list[AddPartitionsToTxnResult] = wire(versions="4+", default=IMPLICIT)  # KIP-890
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = wire(versions="0-3", default=IMPLICIT)


@struct
class AddPartitionsToTxnResult:
    transactional_id: str = wire()
    topic_results: list[AddPartitionsToTxnTopicResult] = wire()


@struct
class AddPartitionsToTxnTopicResult:
    name: str = wire()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = wire()


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: int32 = wire()
    partition_error_code: int16 = wire()
