"""DeleteRecords (21)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.DELETE_RECORDS)
class DeleteRecordsRequest:
    """Moves the log start offset of partitions up, which deletes earlier records."""

    topics: list[DeleteRecordsTopic] = wire()
    timeout_ms: int32 = wire()


@struct
class DeleteRecordsTopic:
    name: str = wire()
    partitions: list[DeleteRecordsPartition] = wire()


@struct
class DeleteRecordsPartition:
    """The first offset to keep; -1 deletes up to the high watermark."""

    partition_index: int32 = wire()
    offset: int64 = wire()


@message(ApiKey.DELETE_RECORDS)
class DeleteRecordsResponse:
    """Each partition's new log start offset."""

    throttle_time_ms: int32 = wire(default=0)
    topics: list[DeleteRecordsTopicResult] = wire()


@struct
class DeleteRecordsTopicResult:
    name: str = wire()
    partitions: list[DeleteRecordsPartitionResult] = wire()


@struct
class DeleteRecordsPartitionResult:
    """The log start offset after the deletion."""

    partition_index: int32 = wire()
    low_watermark: int64 = wire()
    error_code: int16 = wire()
