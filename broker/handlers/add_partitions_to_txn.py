"""AddPartitionsToTxn (24): partitions join a producer's transaction before it writes to them (KIP-98).

v1 is as v0, v2 tells a fenced producer so (KIP-588), v3 is flexible; v4 and v5 are for brokers, which add or verify the
partitions of several transactions at once on behalf of producers that write (KIP-890). One partition that cannot join
keeps the others out, with OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.dispatch import Api, Call
from broker.handlers.init_producer_id import fenced_as
from coordinator.transaction.transaction import V2, Producer
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from protocol.types import TopicPartition

FIRST_BATCHED_VERSION = 4
FIRST_FENCED_VERSION = 2

Codes = Mapping[TopicPartition, ErrorCode]


async def add_partitions_to_txn(call: Call[AddPartitionsToTxnRequest]) -> AddPartitionsToTxnResponse:
    request = call.request
    if call.version >= FIRST_BATCHED_VERSION:
        results = [
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id, topic_results=by_topic(each, await added(call, each))
            )
            for each in request.transactions
        ]
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=by_topic(only, await added(call, only)))


async def added(call: Call[AddPartitionsToTxnRequest], wanted: AddPartitionsToTxnTransaction) -> Codes:
    """What came of each partition."""
    names = [TopicPartition(topic.name, index) for topic in wanted.topics for index in topic.partitions]
    unknown = {name for name in names if not exists(call, name)}
    if unknown:
        return {
            name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if name in unknown else ErrorCode.OPERATION_NOT_ATTEMPTED
            for name in names
        }
    transactions = call.broker.transactions
    producer = Producer(wanted.producer_id, wanted.producer_epoch)
    try:
        if wanted.verify_only:
            found = await transactions.verify_partitions(wanted.transactional_id, producer, names)
            return {name: ErrorCode.NONE if name in found else ErrorCode.TRANSACTION_ABORTABLE for name in names}
        client_version = V2 if call.version >= FIRST_BATCHED_VERSION else 0
        await transactions.add_partitions(wanted.transactional_id, producer, names, client_version)
    except KafkaError as error:
        return dict.fromkeys(names, fenced_as(error.code, is_known=call.version >= FIRST_FENCED_VERSION))
    return dict.fromkeys(names, ErrorCode.NONE)


def exists(call: Call[AddPartitionsToTxnRequest], name: TopicPartition) -> bool:
    topic = call.broker.image.topic(name.topic)
    return topic is not None and name.partition in topic.partitions


def by_topic(wanted: AddPartitionsToTxnTransaction, codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    """In the order in which they were asked for."""
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=codes[TopicPartition(topic.name, index)]
                )
                for index in topic.partitions
            ],
        )
        for topic in wanted.topics
    ]


API = Api(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, add_partitions_to_txn)
