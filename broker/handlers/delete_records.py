"""DeleteRecords (21): raises the log start offset of partitions; records below it are gone (KIP-107).

v1 is as v0, v2 is flexible. Offset -1 stands for the high watermark.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.clock import NS_PER_MS
from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.rules import each
from broker.replica.partition import Partition
from broker.replica.waits import deleted_everywhere, low_watermark
from broker.request.authorisation import DELETE_TOPIC
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1
INVALID_LOW_WATERMARK = -1


async def delete_records(call: Call[DeleteRecordsRequest]) -> DeleteRecordsResponse:
    """Answers once a checkpoint has the new log start offsets, and live followers have deleted the records as well, so
    that deleted records do not come back after the answer. The parts of a large request have one deadline."""
    deadline_ms = call.context.started_ns // NS_PER_MS + call.request.timeout_ms
    topics = []
    log_dirs: dict[str, list[DeleteRecordsPartitionResult]] = {}
    replicated: list[tuple[Partition, DeleteRecordsPartitionResult]] = []
    for name, partitions in requested_offsets(call.request).items():
        results = [delete(call, name, partition, log_dirs, replicated) for partition in partitions.values()]
        topics.append(DeleteRecordsTopicResult(name=name, partitions=results))
    for log_dir, results in log_dirs.items():
        try:
            await call.broker.disk_work.checkpointed(log_dir)
        except KafkaError as error:
            for result in results:
                result.low_watermark, result.error_code = INVALID_LOW_WATERMARK, error.code
    for partition, result in replicated:
        if not result.error_code:
            await wait_for_followers(partition, result, deadline_ms - call.broker.clock.monotonic_ms())
    return DeleteRecordsResponse(topics=topics)


def requested_offsets(request: DeleteRecordsRequest) -> dict[str, dict[int, DeleteRecordsPartition]]:
    """Returns the requested offset of each partition, the last if the partition is named twice; a topic without
    partitions is not answered."""
    named: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        if not topic.partitions:
            continue
        named.setdefault(topic.name, {}).update(
            {partition.partition_index: partition for partition in topic.partitions}
        )
    return named


def delete(
    call: Call[DeleteRecordsRequest],
    topic: str,
    requested: DeleteRecordsPartition,
    log_dirs: dict[str, list[DeleteRecordsPartitionResult]],
    replicated: list[tuple[Partition, DeleteRecordsPartitionResult]],
) -> DeleteRecordsPartitionResult:
    """Deletes records of one partition; its answer waits for the checkpoint of its directory, and for followers."""
    result = DeleteRecordsPartitionResult(
        partition_index=requested.partition_index, low_watermark=INVALID_LOW_WATERMARK, error_code=ErrorCode.NONE
    )
    try:
        partition = call.broker.replicas.leader(topic, requested.partition_index)
        result.low_watermark = partition.delete_records(requested.offset)
    except KafkaError as error:
        result.error_code = error.code
    else:
        log_dirs.setdefault(partition.log_dir, []).append(result)
        if not partition.is_alone:
            replicated.append((partition, result))
    return result


async def wait_for_followers(partition: Partition, result: DeleteRecordsPartitionResult, timeout_ms: int) -> None:
    """Waits for the live followers of a partition, whose lowest log start offset is the answer."""
    try:
        await deleted_everywhere(partition, result.low_watermark, timeout_ms)
    except KafkaError as error:
        result.error_code = error.code
    result.low_watermark = low_watermark(partition)


def with_partitions(topics: Iterable[DeleteRecordsTopic]) -> list[DeleteRecordsTopic]:
    """Returns the topics that are answered."""
    return [topic for topic in topics if topic.partitions]


API = Api(
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    delete_records,
    authorize=each(DELETE_TOPIC, rejected=with_partitions),
    entries=(Entries("topics", "topics", Entries("partitions", "partitions")),),
)
