"""ShareAcknowledge (79)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32, int64, uuid


@message(ApiKey.SHARE_ACKNOWLEDGE)
class ShareAcknowledgeRequest:
    """Accepts, releases, rejects or renews acquired records (KIP-932)."""

    group_id: str | None = wire(nullable="0+", default=None)
    member_id: str | None = wire(nullable="0+")
    share_session_epoch: int32 = wire()
    is_renew_ack: bool = wire(versions="2+", default=False)  # KIP-1222
    topics: list[AcknowledgeTopic] = wire()


@struct
class AcknowledgeTopic:
    topic_id: uuid = wire()
    partitions: list[AcknowledgePartition] = wire()


@struct
class AcknowledgePartition:
    partition_index: int32 = wire()
    acknowledgement_batches: list[AcknowledgementBatch] = wire()


@struct
class AcknowledgementBatch:
    """A range of records with a type for the whole range or for each record: 0 gap, 1 accept, 2 release, 3 reject, 4
    renew."""

    first_offset: int64 = wire()
    last_offset: int64 = wire()
    acknowledge_types: list[int8] = wire()


@message(ApiKey.SHARE_ACKNOWLEDGE)
class ShareAcknowledgeResponse:
    """The error code for each partition's acknowledgements."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int32 = wire(versions="2+", default=0)  # KIP-1222
    responses: list[ShareAcknowledgeTopicResponse] = wire()
    node_endpoints: list[NodeEndpoint] = wire()


@struct
class ShareAcknowledgeTopicResponse:
    topic_id: uuid = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    partition_index: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = wire()


@struct
class LeaderIdAndEpoch:
    leader_id: int32 = wire()
    leader_epoch: int32 = wire()


@struct
class NodeEndpoint:
    node_id: int32 = wire()
    host: str = wire()
    port: int32 = wire()
    rack: str | None = wire(nullable="0+", default=None)
