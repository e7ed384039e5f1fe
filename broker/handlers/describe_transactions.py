"""DescribeTransactions (65): describes the producer, state and partitions of transactional ids (KIP-664)."""

from __future__ import annotations

from functools import partial

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.rejection import rejected
from broker.dispatch.rules import each, in_order, itself
from broker.request.authorisation import DESCRIBE_TOPIC, DESCRIBE_TRANSACTIONAL_ID, inside
from coordinator.transaction.transaction import Transaction
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


async def describe_transactions(call: Call[DescribeTransactionsRequest]) -> DescribeTransactionsResponse:
    states = await call.turns().map(partial(describe, call), call.request.transactional_ids)
    return DescribeTransactionsResponse(transaction_states=states)


def describe(call: Call[DescribeTransactionsRequest], transactional_id: str) -> TransactionState:
    try:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        transaction = call.broker.transactions.find(transactional_id)
    except KafkaError as error:
        return rejected(TransactionState, call.version, error, transactional_id)
    call.count(len(transaction.partitions))
    return TransactionState(
        error_code=0,
        transactional_id=transactional_id,
        transaction_state=transaction.state.text,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=[topic for topic in topics_of(transaction) if call.may(DESCRIBE_TOPIC, topic.topic, quiet=True)],
    )


def topics_of(transaction: Transaction) -> list[TopicData]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(index)
    return [TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()]


API = Api(
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    describe_transactions,
    authorize=in_order(
        each(DESCRIBE_TRANSACTIONAL_ID, "transactional_ids", "transaction_states", itself),
        inside("for each topic of a transaction: others are left out", DESCRIBE_TOPIC),
    ),
    entries=(Entries("transactional_ids", "transaction_states"),),
)
