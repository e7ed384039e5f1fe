"""DeleteRecords (21): raises the log start offset of partitions; what is below is gone (KIP-107).

v1 is as v0, v2 is flexible. Offset -1 stands for the high watermark.
"""

from __future__ import annotations

from broker.dispatch import Api, Call
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1
INVALID_LOW_WATERMARK = -1


def delete_records(call: Call[DeleteRecordsRequest]) -> DeleteRecordsResponse:
    """A partition that is named twice is cut where it was named last."""
    offsets: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in call.request.topics:
        offsets.setdefault(topic.name, {}).update({each.partition_index: each for each in topic.partitions})
    topics = [
        DeleteRecordsTopicResult(name=name, partitions=[delete(call, name, each) for each in partitions.values()])
        for name, partitions in offsets.items()
    ]
    return DeleteRecordsResponse(topics=topics)


def delete(call: Call[DeleteRecordsRequest], topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    try:
        partition = call.broker.replicas.partition(topic, asked.partition_index)
        low_watermark = partition.delete_records(asked.offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=INVALID_LOW_WATERMARK, error_code=error.code
        )
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=low_watermark, error_code=ErrorCode.NONE
    )


API = Api(DeleteRecordsRequest, DeleteRecordsResponse, delete_records)
