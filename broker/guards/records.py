"""The guards of records: WRITE to produce, DESCRIBE to ask for offsets, DELETE to delete, READ to look at producers.

Fetch has its own, `broker/fetch/access.py`: a fetch session names its topics once.
"""

from __future__ import annotations

from typing import Final

from broker.exchange.authorisation import (
    CLUSTER_ACTION_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
    READ_TOPIC,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from broker.exchange.turns import ENTRIES
from broker.guards.shapes import each_topic, split
from broker.handlers import describe_producers as describe_producers_handler
from broker.handlers import list_offsets as list_offsets_handler
from broker.handlers.produce import hold_records, reject_all
from broker.requests.api import Handle
from broker.requests.call import Call
from broker.requests.produce_commit import ParkedProduce
from broker.requests.produce_rules import RecordsRejected, failed_partition
from broker.requests.produce_transaction import name_of, transactional_batches
from protocol.errors import ErrorCode, KafkaError, ProtocolError
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
from protocol.messages.produce import ProduceRequest, ProduceResponse, TopicProduceData, TopicProduceResponse

DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def produce(call: Call[ProduceRequest], handle: Handle) -> ProduceResponse | ParkedProduce | None:
    """Appends to the topics to which the client may write; a transaction needs WRITE on its id before."""
    request = call.request
    transactional_id = request.transactional_id
    is_transactional = transactional_id is not None and bool(transactional_batches(call))
    if is_transactional and not call.may(WRITE_TRANSACTIONAL_ID, transactional_id or ""):
        return reject_all(call, RecordsRejected(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if len(request.topic_data) > ENTRIES:
        hold_records(request)  # others may have their turn
    request.topic_data, denied = await split(call, WRITE_TOPIC, request.topic_data, lambda topic: name_of(call, topic))
    response: ProduceResponse | ParkedProduce | None = await handle(call)
    if not denied:
        return response
    if response is None:
        raise ProtocolError(f"Produce with acks=0 failed with {DENIED.name}")
    answer = response.response if isinstance(response, ParkedProduce) else response
    answer.responses += await call.turns().map(not_written, [topic for topic in denied if topic.partition_data])
    return response


def not_written(topic: TopicProduceData) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[failed_partition(data.index, KafkaError(DENIED)) for data in topic.partition_data],
    )


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
