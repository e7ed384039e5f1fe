"""AllocateProducerIds (67): allocates a block of producer ids to a broker (KIP-730)."""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.rules import whole
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

API = Api(
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, by_controller, authorize=whole(CLUSTER_ACTION_CLUSTER)
)
