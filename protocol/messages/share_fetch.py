"""ShareFetch (78)."""

from __future__ import annotations

from protocol import types
from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32, int64, uuid


@message(ApiKey.SHARE_FETCH)
class ShareFetchRequest:
    """Acquires records of share partitions, and acknowledges earlier records (KIP-932)."""

    group_id: str | None = wire(nullable="0+", default=None)
    member_id: str | None = wire(nullable="0+")
    share_session_epoch: int32 = wire()
    max_wait_ms: int32 = wire()
    min_bytes: int32 = wire()
    max_bytes: int32 = wire(default=0x7FFFFFFF)
    max_records: int32 = wire()
    batch_size: int32 = wire()
    share_acquire_mode: int8 = wire(versions="2+", default=0)  # KIP-1206
    is_renew_ack: bool = wire(versions="2+", default=False)  # KIP-1206
    topics: list[FetchTopic] = wire()
    forgotten_topics_data: list[ForgottenTopic] = wire()


@struct
class FetchTopic:
    topic_id: uuid = wire()
    partitions: list[FetchPartition] = wire()


@struct
class FetchPartition:
    partition_index: int32 = wire()
    acknowledgement_batches: list[AcknowledgementBatch] = wire()


@struct
class AcknowledgementBatch:
    """A range of records with a type for the whole range or for each record: 0 gap, 1 accept, 2 release, 3 reject, 4
    renew."""

    first_offset: int64 = wire()
    last_offset: int64 = wire()
    acknowledge_types: list[int8] = wire()


@struct
class ForgottenTopic:
    """Partitions that leave the share session."""

    topic_id: uuid = wire()
    partitions: list[int32] = wire()


@message(ApiKey.SHARE_FETCH)
class ShareFetchResponse:
    """Record batches, with the acquired ranges and their delivery counts."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int32 = wire()
    responses: list[ShareFetchableTopicResponse] = wire()
    node_endpoints: list[NodeEndpoint] = wire()


@struct
class ShareFetchableTopicResponse:
    topic_id: uuid = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    """A share partition's records, the acquired ranges, and the error code of its acknowledgements."""

    partition_index: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    acknowledge_error_code: int16 = wire()
    acknowledge_error_message: str | None = wire(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = wire()
    records: types.records = wire()
    acquired_records: list[AcquiredRecords] = wire()


@struct
class LeaderIdAndEpoch:
    leader_id: int32 = wire()
    leader_epoch: int32 = wire()


@struct
class AcquiredRecords:
    """A range of records that the member has acquired, and its delivery count."""

    first_offset: int64 = wire()
    last_offset: int64 = wire()
    delivery_count: int16 = wire()


@struct
class NodeEndpoint:
    node_id: int32 = wire()
    host: str = wire()
    port: int32 = wire()
    rack: str | None = wire(nullable="0+", default=None)
