"""DeleteRecords (21): raises the log start offset of partitions; what is below is gone (KIP-107).

v1 is as v0, v2 is flexible. Offset -1 stands for the high watermark.
"""

from __future__ import annotations

from broker.exchange.authorisation import DELETE_TOPIC, by_handler
from broker.requests.api import Api
from broker.requests.call import Call
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


async def delete_records(call: Call[DeleteRecordsRequest]) -> DeleteRecordsResponse:
    """Answers once a checkpoint has where the logs begin now: what a client knows to be gone does not come back."""
    topics = []
    log_dirs: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for name, partitions in named_once(call.request).items():
        results = [delete(call, name, each, log_dirs) for each in partitions.values()]
        topics.append(DeleteRecordsTopicResult(name=name, partitions=results))
    for log_dir, results in log_dirs.items():
        try:
            await call.broker.disk_work.checkpointed(log_dir)
        except KafkaError as error:
            for result in results:
                result.low_watermark, result.error_code = INVALID_LOW_WATERMARK, error.code
    return DeleteRecordsResponse(topics=topics)


def named_once(request: DeleteRecordsRequest) -> dict[str, dict[int, DeleteRecordsPartition]]:
    """A partition that is named twice is cut where it was named last; a topic without partitions is not answered."""
    named: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        if not topic.partitions:
            continue
        named.setdefault(topic.name, {}).update({each.partition_index: each for each in topic.partitions})
    return named


def delete(
    call: Call[DeleteRecordsRequest],
    topic: str,
    asked: DeleteRecordsPartition,
    log_dirs: dict[str, list[DeleteRecordsPartitionResult]],
) -> DeleteRecordsPartitionResult:
    """One partition; its answer is noted with the directory whose checkpoint it waits for."""
    result = DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=INVALID_LOW_WATERMARK, error_code=ErrorCode.NONE
    )
    try:
        partition = call.broker.replicas.leader(topic, asked.partition_index)
        result.low_watermark = partition.delete_records(asked.offset)
    except KafkaError as error:
        result.error_code = error.code
    else:
        log_dirs.setdefault(partition.log_dir, []).append(result)
    return result


API = Api(DeleteRecordsRequest, DeleteRecordsResponse, delete_records, by_handler(DELETE_TOPIC))
