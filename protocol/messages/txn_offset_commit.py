"""TxnOffsetCommit (28)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, int64, uuid


@message(ApiKey.TXN_OFFSET_COMMIT)
class TxnOffsetCommitRequest:
    """Offsets that are committed when the transaction commits."""

    transactional_id: str = wire()
    group_id: str = wire()
    producer_id: int64 = wire()
    producer_epoch: int16 = wire()
    generation_id_or_member_epoch: int32 = wire(versions="3+", default=-1)  # KIP-447
    member_id: str = wire(versions="3+", default="")  # KIP-447
    group_instance_id: str | None = wire(versions="3+", nullable="3+", default=None)  # KIP-447
    topics: list[TxnOffsetCommitRequestTopic] = wire()


@struct
class TxnOffsetCommitRequestTopic:
    name: str = wire(versions="0-5", default="")
    topic_id: uuid = wire(versions="6+", default=IMPLICIT)  # KIP-1319
    partitions: list[TxnOffsetCommitRequestPartition] = wire()


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: int32 = wire()
    committed_offset: int64 = wire()
    committed_leader_epoch: int32 = wire(versions="2+", default=-1)  # KIP-320
    committed_metadata: str | None = wire(nullable="0+")


@message(ApiKey.TXN_OFFSET_COMMIT)
class TxnOffsetCommitResponse:
    """The error code for each partition."""

    throttle_time_ms: int32 = wire(default=0)
    topics: list[TxnOffsetCommitResponseTopic] = wire()


@struct
class TxnOffsetCommitResponseTopic:
    name: str = wire(versions="0-5", default="")
    topic_id: uuid = wire(versions="6+", default=IMPLICIT)  # KIP-1319
    partitions: list[TxnOffsetCommitResponsePartition] = wire()


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: int32 = wire()
    error_code: int16 = wire()
