"""AddPartitionsToTxn (24): adds partitions to a producer's transaction before it writes to them (KIP-98).

v1 is as v0, v2 names the error of a fenced producer (KIP-588), v3 is flexible; v4 and v5 are for brokers, which add or
verify the partitions of several transactions at once on behalf of producers that write (KIP-890). If one partition
cannot join, no other partition joins either: the others get OPERATION_NOT_ATTEMPTED. The coordinators' own topics are
not for producers: their markers would end up in those logs. Partitions of `__consumer_offsets` are added by
AddOffsetsToTxn, or by brokers with v4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from broker.dispatch.api import Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.rules import denial, own, reject
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from broker.request.turns import batches
from broker.shards.translations import seen_by_producers
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
from protocol.schema import since
from protocol.types import TopicPartition

FIRST_BATCHED_VERSION = since(AddPartitionsToTxnRequest, "transactions")
SEEN_BY_PRODUCERS = seen_by_producers(fenced_since=2)


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
    return await call.turns().map_together(partial(result_of, call), transactions)


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
    names = await named(call, requested.topics)
    rejections = await call.turns().map(partial(rejection, call), names)
    if any(rejections):
        return await not_attempted(call, names, rejections)
    transactions = call.broker.transactions
    producer = Producer(requested.producer_id, requested.producer_epoch)
    try:
        if requested.verify_only:
            in_transaction = await transactions.verify_partitions(requested.transactional_id, producer, names)
            return await by_topic(call, names, lambda name: verified(name in in_transaction))
        client_version = V2 if call.version >= FIRST_BATCHED_VERSION else 0
        await transactions.add_partitions(requested.transactional_id, producer, names, client_version)
    except KafkaError as error:
        code = SEEN_BY_PRODUCERS(error, call.version).code
        if requested.verify_only:
            return await by_topic(call, names, lambda _: code)
        return await as_named(call, requested.topics, code)
    return await as_named(call, requested.topics, ErrorCode.NONE)


async def named(
    call: Call[AddPartitionsToTxnRequest], topics: Sequence[AddPartitionsToTxnTopic]
) -> list[TopicPartition]:
    """Returns the partitions of the topics, each once."""
    names: dict[TopicPartition, None] = {}
    turns = call.turns()
    for topic in topics:
        for some in batches(topic.partitions):
            await turns.next()
            names.update((TopicPartition(topic.name, index), None) for index in some)
    return list(names)


def verified(is_part: bool) -> ErrorCode:
    return ErrorCode.NONE if is_part else ErrorCode.TRANSACTION_ABORTABLE


async def as_named(
    call: Call[AddPartitionsToTxnRequest], topics: Sequence[AddPartitionsToTxnTopic], code: ErrorCode
) -> list[AddPartitionsToTxnTopicResult]:
    """Returns the coordinator's answer with topics and partitions as the request names them. A partition that is named
    twice is answered twice."""
    turns = call.turns()

    def result(index: int) -> AddPartitionsToTxnPartitionResult:
        return AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)

    async def of_topic(topic: AddPartitionsToTxnTopic) -> AddPartitionsToTxnTopicResult:
        results = await turns.map(result, topic.partitions)
        return AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=results)

    return await turns.map_awaited(of_topic, topics)


def rejection(call: Call[AddPartitionsToTxnRequest], name: TopicPartition) -> ErrorCode:
    """Returns the error that keeps the partition out of the client's transaction; NONE if it can join."""
    if call.version < FIRST_BATCHED_VERSION and is_internal(name.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = call.broker.image.topic(name.topic)
    exists = topic is not None and name.partition in topic.partitions
    return ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def not_attempted(
    call: Call[AddPartitionsToTxnRequest], names: Sequence[TopicPartition], rejections: Sequence[ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    """Returns the errors of all partitions if any of them can't join."""
    codes = dict(zip(names, rejections, strict=True))
    return await by_topic(call, names, lambda name: codes[name] or ErrorCode.OPERATION_NOT_ATTEMPTED)


async def by_topic(
    call: Call[AddPartitionsToTxnRequest],
    names: Sequence[TopicPartition],
    code_of: Callable[[TopicPartition], ErrorCode],
) -> list[AddPartitionsToTxnTopicResult]:
    """Returns an answer with a code for each partition, in the order in which topics and partitions were first named; a
    topic without partitions is left out."""
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}

    def add(name: TopicPartition) -> None:
        result = AddPartitionsToTxnPartitionResult(partition_index=name.partition, partition_error_code=code_of(name))
        topics.setdefault(name.topic, []).append(result)

    turns = call.turns()
    await turns.map(add, names)
    return await turns.map(
        lambda name: AddPartitionsToTxnTopicResult(name=name, results_by_partition=topics[name]), list(topics)
    )


async def permitted_partitions(call: Call[AddPartitionsToTxnRequest], handle: Handle) -> object:
    """Authorizes the client for the transactional id, then for each topic: if one topic is denied, no partition is
    added; a batch of versions 4 and 5 requires CLUSTER_ACTION on CLUSTER."""
    request = call.request
    if call.version >= FIRST_BATCHED_VERSION:
        may = call.may(CLUSTER_ACTION_CLUSTER)
        return await handle(call) if may else await reject(call, denial(CLUSTER_ACTION_CLUSTER))
    topics = request.v3_and_below_topics
    names = await named(call, topics)
    if not call.may(WRITE_TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        results = await by_topic(call, names, lambda _: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    permitted = await call.permitted(WRITE_TOPIC, (topic.name for topic in topics if not is_internal(topic.name)))
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rejections = await call.turns().map(
        lambda name: rejection(call, name) if name.topic in permitted else denied, names
    )
    if denied not in rejections:
        return await handle(call)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await not_attempted(call, names, rejections))


API = Api(
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    add_partitions_to_txn,
    authorize=own(permitted_partitions, CLUSTER_ACTION_CLUSTER, WRITE_TRANSACTIONAL_ID, WRITE_TOPIC),
)
