"""TxnOffsetCommit (28): stores a group's offsets, which count once the producer's transaction commits (KIP-98).

v1 is as v0, v2 brings leader epochs (KIP-320), v3 is flexible and adds the member that commits (KIP-447), v4 may return
TRANSACTION_ABORTABLE, v5 adds the partition to the transaction, without AddOffsetsToTxn (KIP-890), v6 names topics by
id (KIP-1319). The offsets' partition has to be part of the transaction, which the transaction's coordinator verifies
first.
"""

from __future__ import annotations

from typing import Final

from broker.dispatch.absent_partitions import merged, take_absent
from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_client import client_of
from broker.dispatch.rejection import rejected
from broker.dispatch.rules import each, in_order, named_since, of_group, of_transaction, whole
from broker.produce.verification import Supports, check_joined
from broker.request.authorisation import READ_GROUP, READ_TOPIC, WRITE_TRANSACTIONAL_ID
from broker.shards.translations import PRODUCERS_BEFORE_2_0, seen_by_client, translated
from coordinator.group.offsets.commit import commit_transactional
from coordinator.transaction.transaction import Producer
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponseTopic,
)
from protocol.schema import since
from protocol.types import TopicPartition

FIRST_LOADING_VERSION: Final = 2
FIRST_ABORTABLE_VERSION, FIRST_ADDING_VERSION = 4, 5
FIRST_TOPIC_ID_VERSION = since(TxnOffsetCommitRequestTopic, "topic_id")


async def txn_offset_commit(call: Call[TxnOffsetCommitRequest]) -> TxnOffsetCommitResponse:
    """Answers partitions that don't exist, and gets the answer for the rest from the group's shard."""
    request = call.request
    by_id = call.version >= FIRST_TOPIC_ID_VERSION
    request.topics, absent = take_absent(call, request.topics, TxnOffsetCommitResponseTopic, by_id=by_id)
    if not request.topics:
        return TxnOffsetCommitResponse(topics=merged(absent, []))
    try:
        response = await committed(call)
    except KafkaError as raised:
        error = seen_by_client(raised)
        if call.version < FIRST_LOADING_VERSION:
            error = KafkaError(translated(error.code, PRODUCERS_BEFORE_2_0))
        topics = [rejected(TxnOffsetCommitResponseTopic, call.version, error, topic) for topic in request.topics]
        response = TxnOffsetCommitResponse(topics=topics)
    response.topics = merged(absent, response.topics)
    return response


async def committed(call: Call[TxnOffsetCommitRequest]) -> TxnOffsetCommitResponse:
    request, groups = call.request, call.broker.groups
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    name = TopicPartition(groups.topic.name, groups.partition_of(request.group_id))
    producer = Producer(request.producer_id, request.producer_epoch)
    supports = Supports.of(call.version, FIRST_ABORTABLE_VERSION, FIRST_ADDING_VERSION)
    await check_joined(call.broker, request.transactional_id, producer, name, supports)
    return await groups.submit(request.group_id, commit_transactional, request, client_of(call))


API = Api(
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    txn_offset_commit,
    authorize=in_order(
        whole(WRITE_TRANSACTIONAL_ID, of_transaction),
        whole(READ_GROUP, of_group),
        each(READ_TOPIC, name_of=named_since(FIRST_TOPIC_ID_VERSION)),
    ),
    entries=(Entries("topics", "topics", Entries("partitions", "partitions")),),
)
