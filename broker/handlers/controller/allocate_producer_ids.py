"""AllocateProducerIds (67): allocates a block of producer ids to a broker (KIP-730)."""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

API = Api(
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    answered_by=CONTROLLER,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
)
