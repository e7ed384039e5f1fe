"""AlterPartition (56): a leader would have other in-sync replicas (KIP-497).

v2 has topic ids (KIP-841), v3 the epochs in which brokers fetched (KIP-903). Versions 0 and 1, which name topics, are
of brokers older than Kafka 4 has any to do with.
"""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

API = Api(
    AlterPartitionRequest,
    AlterPartitionResponse,
    by_controller,
    of_cluster(CLUSTER_ACTION_CLUSTER),
    oldest=2,
)
