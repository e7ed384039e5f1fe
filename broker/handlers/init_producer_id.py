"""InitProducerId (22): a producer id for an idempotent or transactional producer (KIP-98).

v1 is as v0, v2 is flexible, v3 lets a producer that knows its id and epoch bump the epoch (KIP-360), v4 tells a fenced
producer so (KIP-588), v5 is for transactions v2 (KIP-890).
"""

from __future__ import annotations

from broker.dispatch import Api, Call
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NO_PRODUCER_ID, NO_EPOCH = -1, -1
FIRST_EPOCH = 0


async def init_producer_id(call: Call[InitProducerIdRequest]) -> InitProducerIdResponse:
    request = call.request
    if request.transactional_id is not None:
        return refused(ErrorCode.INVALID_REQUEST if not request.transactional_id else ErrorCode.NOT_COORDINATOR)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        return refused(ErrorCode.INVALID_REQUEST)
    try:
        producer_id = await call.broker.cluster.next_producer_id()
    except KafkaError as error:
        return refused(error.code)
    return InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=FIRST_EPOCH)


def refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)


API = Api(InitProducerIdRequest, InitProducerIdResponse, init_producer_id)
