"""AddOffsetsToTxn (25): adds the partition of a group's offsets to a transaction (KIP-98).

v1 is as v0, v2 names the error of a fenced producer (KIP-588), v3 is flexible, v4 may return TRANSACTION_ABORTABLE
(KIP-890). Clients of transactions v2 don't send it: TxnOffsetCommit 5 joins the transaction itself.
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import in_order, of_group, of_transaction, whole
from broker.request.authorisation import READ_GROUP, WRITE_TRANSACTIONAL_ID
from broker.shards.translations import seen_by_producers
from coordinator.transaction.transaction import Producer
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.types import TopicPartition


async def add_offsets_to_txn(call: Call[AddOffsetsToTxnRequest]) -> AddOffsetsToTxnResponse:
    request, groups = call.request, call.broker.groups
    name = TopicPartition(groups.topic.name, groups.partition_of(request.group_id))
    producer = Producer(request.producer_id, request.producer_epoch)
    await call.broker.transactions.add_partitions(request.transactional_id, producer, [name], 0)
    return AddOffsetsToTxnResponse(error_code=0)


API = Api(
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    add_offsets_to_txn,
    authorize=in_order(whole(WRITE_TRANSACTIONAL_ID, of_transaction), whole(READ_GROUP, of_group)),
    translate=seen_by_producers(fenced_since=2),
)
