"""AllocateProducerIds (67): a broker takes a block of producer ids (KIP-730)."""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

API = Api(AllocateProducerIdsRequest, AllocateProducerIdsResponse, by_controller, of_cluster(CLUSTER_ACTION_CLUSTER))
