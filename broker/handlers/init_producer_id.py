"""InitProducerId (22): gives an idempotent or transactional producer its id and epoch (KIP-98).

v1 is as v0, v2 is flexible, v3 lets a producer that knows its id and epoch bump the epoch (KIP-360), v4 names the error
of a fenced producer (KIP-588), v5 may return TRANSACTION_ABORTABLE (KIP-890). An idempotent producer gets a new id; one
with a transactional id gets its next epoch, which fences the producer that had the last. Two-phase commit (KIP-939) is
not part of a stable version.
"""

from __future__ import annotations

from broker.coordinators.translations import seen_by_producer
from broker.exchange.authorisation import IDEMPOTENT_WRITE_CLUSTER, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID, by_handler
from broker.requests.api import Api
from broker.requests.call import Call
from coordinator.transaction.transaction import NO_EPOCH, NO_PRODUCER_ID, Producer
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FIRST_EPOCH = 0
FIRST_FENCED_VERSION = 4


async def init_producer_id(call: Call[InitProducerIdRequest]) -> InitProducerIdResponse:
    request = call.request
    try:
        producer = await producer_of(call, request.transactional_id, expected(request))
    except KafkaError as error:
        return failed(seen_by_producer(error.code, knows_fenced=call.version >= FIRST_FENCED_VERSION))
    return InitProducerIdResponse(error_code=0, producer_id=producer.producer_id, producer_epoch=producer.epoch)


def expected(request: InitProducerIdRequest) -> Producer | None:
    """Returns the producer id and epoch that the request has; it has both or neither."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return None if request.producer_id == NO_PRODUCER_ID else Producer(request.producer_id, request.producer_epoch)


async def producer_of(
    call: Call[InitProducerIdRequest], transactional_id: str | None, expected: Producer | None
) -> Producer:
    if transactional_id is None:
        return Producer(await call.broker.producer_ids.next_id(), FIRST_EPOCH)
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return await call.broker.transactions.init_producer_id(
        transactional_id, call.request.transaction_timeout_ms, expected
    )


def failed(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)


def refuse(_: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return failed(error.code)


REQUIRES = by_handler(WRITE_TRANSACTIONAL_ID, IDEMPOTENT_WRITE_CLUSTER, WRITE_TOPIC)
API = Api(InitProducerIdRequest, InitProducerIdResponse, init_producer_id, REQUIRES, refuse=refuse)
