"""AddPartitionsToTxn (24): adds partitions to a producer's transaction before it writes to them (KIP-98).

v1 is as v0, v2 names the error of a fenced producer (KIP-588), v3 is flexible; v4 and v5 are for brokers, which add or
verify the partitions of several transactions at once on behalf of producers that write (KIP-890). One partition that
cannot join keeps the others out, with OPERATION_NOT_ATTEMPTED. The coordinators' own topics are not for producers:
their markers would end up in those logs. Partitions of `__consumer_offsets` are added by AddOffsetsToTxn, or by brokers
with v4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from broker.coordinators.translations import seen_by_producer
from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID, by_handler
from broker.exchange.turns import batches
from broker.requests.api import Api
from broker.requests.call import Call
from coordinator.cluster.topics.names import is_internal
from coordinator.transaction.transaction import V2, Producer
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
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
        results = await all_results(call, request.transactions)
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await added(call, only))


async def all_results(
    call: Call[AddPartitionsToTxnRequest], transactions: Sequence[AddPartitionsToTxnTransaction]
) -> list[AddPartitionsToTxnResult]:
    """Returns the result of each transaction; none waits for the commit of another's record."""
    if len(transactions) == 1:
        return [await result_of(call, transactions[0])]
    results: list[AddPartitionsToTxnResult] = []
    turns = call.turns()
    for some in batches(transactions):
        results += await asyncio.gather(*(result_of(call, transaction) for transaction in some))
        await turns.next()
    return results


async def result_of(
    call: Call[AddPartitionsToTxnRequest], transaction: AddPartitionsToTxnTransaction
) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id, topic_results=await added(call, transaction)
    )


async def added(
    call: Call[AddPartitionsToTxnRequest], requested: AddPartitionsToTxnTransaction
) -> list[AddPartitionsToTxnTopicResult]:
    """Returns the result of each partition."""
    names = list(
        dict.fromkeys(TopicPartition(topic.name, index) for topic in requested.topics for index in topic.partitions)
    )
    refusals = await call.turns().map(partial(refusal, call), names)
    if any(refusals):
        codes = (code or ErrorCode.OPERATION_NOT_ATTEMPTED for code in refusals)
        return await by_topic(call, dict(zip(names, codes, strict=True)))
    transactions = call.broker.transactions
    producer = Producer(requested.producer_id, requested.producer_epoch)
    try:
        if requested.verify_only:
            in_transaction = await transactions.verify_partitions(requested.transactional_id, producer, names)
            return await by_topic(call, {name: verified(name in in_transaction) for name in names})
        client_version = V2 if call.version >= FIRST_BATCHED_VERSION else 0
        await transactions.add_partitions(requested.transactional_id, producer, names, client_version)
    except KafkaError as error:
        code = seen_by_producer(error.code, knows_fenced=call.version >= FIRST_FENCED_VERSION)
        if requested.verify_only:
            return await by_topic(call, dict.fromkeys(names, code))
        return await call.turns().map(partial(as_named, code), requested.topics)
    return await call.turns().map(partial(as_named, ErrorCode.NONE), requested.topics)


def verified(is_part: bool) -> ErrorCode:
    return ErrorCode.NONE if is_part else ErrorCode.TRANSACTION_ABORTABLE


def as_named(code: ErrorCode, topic: AddPartitionsToTxnTopic) -> AddPartitionsToTxnTopicResult:
    """Returns the coordinator's answer for a topic and its partitions as the request names them, even if twice."""
    results = [
        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        for index in topic.partitions
    ]
    return AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=results)


def refusal(call: Call[AddPartitionsToTxnRequest], name: TopicPartition) -> ErrorCode:
    """Returns why the partition cannot join a transaction of this client's; NONE if it can."""
    if call.version < FIRST_BATCHED_VERSION and is_internal(name.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = call.broker.image.topic(name.topic)
    exists = topic is not None and name.partition in topic.partitions
    return ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def by_topic(call: Call[AddPartitionsToTxnRequest], codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    """Returns an answer of the partitions' own: each topic and partition once, in the order in which they were first
    named; a topic without partitions is left out."""
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}

    def add(name: TopicPartition) -> None:
        result = AddPartitionsToTxnPartitionResult(partition_index=name.partition, partition_error_code=codes[name])
        topics.setdefault(name.topic, []).append(result)

    turns = call.turns()
    await turns.map(add, list(codes))
    return await turns.map(
        lambda name: AddPartitionsToTxnTopicResult(name=name, results_by_partition=topics[name]), list(topics)
    )


REQUIRES = by_handler(CLUSTER_ACTION_CLUSTER, WRITE_TRANSACTIONAL_ID, WRITE_TOPIC)
API = Api(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, add_partitions_to_txn, REQUIRES)
