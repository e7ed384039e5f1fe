"""EndTxn (26): commits or aborts a producer's transaction (KIP-98).

The answer comes once the decision is written; markers follow. v1 is as v0, v2 names the error of a fenced producer
(KIP-588), v3 is flexible, v4 may return TRANSACTION_ABORTABLE, v5 is for transactions v2: the end bumps the epoch, or
changes the producer id if the epochs are used up, and the answer has both (KIP-890).
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import of_transaction, whole
from broker.request.authorisation import WRITE_TRANSACTIONAL_ID
from broker.shards.translations import seen_by_producers
from coordinator.transaction.transaction import V2, Producer
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_V2_VERSION = 5


async def end_txn(call: Call[EndTxnRequest]) -> EndTxnResponse:
    request = call.request
    producer = await call.broker.transactions.end(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        committed=request.committed,
        client_version=V2 if call.version >= FIRST_V2_VERSION else 0,
    )
    return EndTxnResponse(error_code=0, producer_id=producer.producer_id, producer_epoch=producer.epoch)


API = Api(
    EndTxnRequest,
    EndTxnResponse,
    end_txn,
    authorize=whole(WRITE_TRANSACTIONAL_ID, of_transaction),
    translate=seen_by_producers(fenced_since=2),
)
