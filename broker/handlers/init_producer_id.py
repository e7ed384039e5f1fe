"""InitProducerId (22): gives an idempotent or transactional producer its id and epoch (KIP-98).

v1 is as v0, v2 is flexible, v3 lets a producer that knows its id and epoch bump the epoch (KIP-360), v4 names the
error of a fenced producer (KIP-588), v5 may return TRANSACTION_ABORTABLE (KIP-890). An idempotent producer gets a new
id; a transactional producer gets its id's next epoch, which fences the producer with the previous epoch. Two-phase
commit (KIP-939) is not part of a stable version.
"""

from __future__ import annotations

from broker.dispatch.api import Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.rules import denial, own, reject
from broker.request.authorisation import IDEMPOTENT_WRITE_CLUSTER, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from broker.shards.translations import seen_by_producers
from coordinator.transaction.transaction import NO_EPOCH, NO_PRODUCER_ID, Producer
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FIRST_EPOCH = 0


async def init_producer_id(call: Call[InitProducerIdRequest]) -> InitProducerIdResponse:
    request = call.request
    producer = await producer_of(call, request.transactional_id, expected(request))
    return InitProducerIdResponse(error_code=0, producer_id=producer.producer_id, producer_epoch=producer.epoch)


def expected(request: InitProducerIdRequest) -> Producer | None:
    """Returns the producer id and epoch in the request, which has both or neither."""
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


def rejection(_: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)


async def permitted_producer(call: Call[InitProducerIdRequest], handle: Handle) -> object:
    """Authorizes the client for the transactional id; without an id, the client needs WRITE on any topic (KIP-679)."""
    transactional_id, authorizer = call.request.transactional_id, call.host.authorizer
    if transactional_id is not None:
        requirement, may = WRITE_TRANSACTIONAL_ID, call.may(WRITE_TRANSACTIONAL_ID, transactional_id)
    else:
        requirement, may = IDEMPOTENT_WRITE_CLUSTER, call.may(IDEMPOTENT_WRITE_CLUSTER, quiet=True)
        may = may or authorizer is None or authorizer.allows_some(call.context, *WRITE_TOPIC)
    return await handle(call) if may else await reject(call, denial(requirement))


API = Api(
    InitProducerIdRequest,
    InitProducerIdResponse,
    init_producer_id,
    authorize=own(permitted_producer, WRITE_TRANSACTIONAL_ID, IDEMPOTENT_WRITE_CLUSTER, WRITE_TOPIC),
    translate=seen_by_producers(fenced_since=4),
    reject=rejection,
)
