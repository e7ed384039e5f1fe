"""The guards of records: DESCRIBE to ask for offsets, DELETE to delete, READ to look at producers.

Fetch and Produce ask by themselves, `broker/fetch/access.py` and `broker/produce/serve.py`.
"""

from __future__ import annotations

from typing import Final

from broker.exchange.authorisation import (
    CLUSTER_ACTION_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
    READ_TOPIC,
)
from broker.guards.shapes import each_topic, split
from broker.handlers import describe_producers as describe_producers_handler
from broker.handlers import list_offsets as list_offsets_handler
from broker.requests.api import Handle
from broker.requests.call import Call
from protocol.errors import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from protocol.messages.describe_producers import TopicRequest, TopicResponse
from protocol.messages.list_offsets import ListOffsetsTopic, ListOffsetsTopicResponse
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)

DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def not_listed(topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
    failed = [list_offsets_handler.failed(one.partition_index, DENIED) for one in topic.partitions]
    return ListOffsetsTopicResponse(name=topic.name, partitions=failed)


def not_deleted(topic: DeleteRecordsTopic) -> DeleteRecordsTopicResult:
    return DeleteRecordsTopicResult(
        name=topic.name,
        partitions=[
            DeleteRecordsPartitionResult(partition_index=one.partition_index, low_watermark=-1, error_code=DENIED)
            for one in topic.partitions
        ],
    )


def not_described(topic: TopicRequest) -> TopicResponse:
    failed = [describe_producers_handler.failed(index, DENIED, None) for index in topic.partition_indexes]
    return TopicResponse(name=topic.name, partitions=failed)


list_offsets: Final = each_topic(DESCRIBE_TOPIC, not_listed)
delete_records: Final = each_topic(DELETE_TOPIC, not_deleted, lambda topic: topic.partitions)
describe_producers: Final = each_topic(READ_TOPIC, not_described)


async def offset_for_leader_epoch(
    call: Call[OffsetForLeaderEpochRequest], handle: Handle
) -> OffsetForLeaderEpochResponse:
    """Answers brokers everything, and others about topics that they may describe."""
    request = call.request
    if call.may(CLUSTER_ACTION_CLUSTER, quiet=True):
        answer: OffsetForLeaderEpochResponse = await handle(call)
        return answer
    request.topics, denied = await split(call, DESCRIBE_TOPIC, request.topics, lambda topic: topic.topic)
    response: OffsetForLeaderEpochResponse = await handle(call)
    response.topics += await call.turns().map(without_end, denied)
    return response


def without_end(topic: OffsetForLeaderTopic) -> OffsetForLeaderTopicResult:
    failed = [EpochEndOffset(error_code=DENIED, partition=one.partition, end_offset=-1) for one in topic.partitions]
    return OffsetForLeaderTopicResult(topic=topic.topic, partitions=failed)
