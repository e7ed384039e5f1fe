"""The guards of transactions: WRITE on the transactional id to run one, DESCRIBE to look."""

from __future__ import annotations

from typing import Final

from broker.exchange.authorisation import (
    ALTER_CLUSTER,
    CLUSTER_ACTION_CLUSTER,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    IDEMPOTENT_WRITE_CLUSTER,
    READ_GROUP,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
    Operation,
    Resource,
)
from broker.guards.shapes import whole
from broker.handlers import add_partitions_to_txn as add_partitions_handler
from broker.handlers import describe_transactions as describe_handler
from broker.handlers import init_producer_id as init_producer_id_handler
from broker.requests.api import Handle
from broker.requests.call import Call
from coordinator.cluster.topics.names import is_internal
from protocol.errors import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from protocol.messages.end_txn import EndTxnResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.types import TopicPartition

DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def init_producer_id(call: Call[InitProducerIdRequest], handle: Handle) -> InitProducerIdResponse:
    """Gives producer ids to who may write to any topic at all (KIP-679), or run this transaction."""
    transactional_id = call.request.transactional_id
    if transactional_id is not None:
        if not call.may(WRITE_TRANSACTIONAL_ID, transactional_id):
            return init_producer_id_handler.failed(DENIED)
    elif not call.may(IDEMPOTENT_WRITE_CLUSTER, quiet=True) and not call.host.authorizer.allows_some(
        call.context, Operation.WRITE, Resource.TOPIC
    ):
        return init_producer_id_handler.failed(CLUSTER_DENIED)
    response: InitProducerIdResponse = await handle(call)
    return response


async def add_partitions_to_txn(call: Call[AddPartitionsToTxnRequest], handle: Handle) -> AddPartitionsToTxnResponse:
    """Lets brokers add any partitions, and a producer those of topics that it may write to: one that may not join
    keeps the others out."""
    request = call.request
    if call.version >= add_partitions_handler.FIRST_BATCHED_VERSION:
        if not call.may(CLUSTER_ACTION_CLUSTER):
            return AddPartitionsToTxnResponse(error_code=CLUSTER_DENIED)
        answer: AddPartitionsToTxnResponse = await handle(call)
        return answer
    topics = request.v3_and_below_topics
    names = [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]
    if not call.may(WRITE_TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        results = await add_partitions_handler.by_topic(call, dict.fromkeys(names, DENIED))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    permitted = await call.permitted(WRITE_TOPIC, (topic.name for topic in topics if not is_internal(topic.name)))
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def refusal(name: TopicPartition) -> ErrorCode:
        return add_partitions_handler.refusal(call, name) if name.topic in permitted else refused

    codes = await call.turns().map(refusal, names)
    if refused in codes:
        answers = {name: code or ErrorCode.OPERATION_NOT_ATTEMPTED for name, code in zip(names, codes, strict=True)}
        results = await add_partitions_handler.by_topic(call, answers)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    response: AddPartitionsToTxnResponse = await handle(call)
    return response


async def add_offsets_to_txn(call: Call[AddOffsetsToTxnRequest], handle: Handle) -> AddOffsetsToTxnResponse:
    if not call.may(WRITE_TRANSACTIONAL_ID, call.request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=DENIED)
    if not call.may(READ_GROUP, call.request.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    response: AddOffsetsToTxnResponse = await handle(call)
    return response


end_txn: Final = whole(
    WRITE_TRANSACTIONAL_ID, lambda _: EndTxnResponse(error_code=DENIED), lambda request: request.transactional_id
)


async def write_txn_markers(call: Call[WriteTxnMarkersRequest], handle: Handle) -> WriteTxnMarkersResponse:
    """Takes markers from coordinators, and from administrators."""
    if call.may(ALTER_CLUSTER, quiet=True) or call.may(CLUSTER_ACTION_CLUSTER):
        response: WriteTxnMarkersResponse = await handle(call)
        return response
    turns = call.turns()
    markers = [
        WritableTxnMarkerResult(producer_id=marker.producer_id, topics=await turns.map(not_marked, marker.topics))
        for marker in call.request.markers
    ]
    return WriteTxnMarkersResponse(markers=markers)


def not_marked(topic: WritableTxnMarkerTopic) -> WritableTxnMarkerTopicResult:
    partitions = [
        WritableTxnMarkerPartitionResult(partition_index=index, error_code=CLUSTER_DENIED)
        for index in topic.partition_indexes
    ]
    return WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions)


async def describe_transactions(
    call: Call[DescribeTransactionsRequest], handle: Handle
) -> DescribeTransactionsResponse:
    """Describes the transactions that one may describe, with those of their topics of which one may know."""
    requested = call.request.transactional_ids
    permitted = await call.permitted(DESCRIBE_TRANSACTIONAL_ID, requested)
    call.request.transactional_ids = [name for name in requested if name in permitted]
    response: DescribeTransactionsResponse = await handle(call)
    for transaction in response.transaction_states:
        transaction.topics = [
            topic for topic in transaction.topics if call.may(DESCRIBE_TOPIC, topic.topic, quiet=True)
        ]
    denied = [name for name in requested if name not in permitted]
    response.transaction_states += await call.turns().map(lambda name: describe_handler.failed(name, DENIED), denied)
    return response


async def list_transactions(call: Call[ListTransactionsRequest], handle: Handle) -> ListTransactionsResponse:
    response: ListTransactionsResponse = await handle(call)
    states = response.transaction_states
    names = await call.permitted(DESCRIBE_TRANSACTIONAL_ID, (state.transactional_id for state in states), quiet=True)
    response.transaction_states = [state for state in states if state.transactional_id in names]
    return response
