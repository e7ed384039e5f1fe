"""AllocateProducerIds (67): a broker takes a block of producer ids (KIP-730)."""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


async def allocate_producer_ids(call: HostCall[AllocateProducerIdsRequest]) -> AllocateProducerIdsResponse:
    return await call.host.controller.allocate_producer_ids(call.request)


API = Api(
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, allocate_producer_ids, of_cluster(CLUSTER_ACTION_CLUSTER)
)
