"""AlterPartition (56): changes a partition's in-sync replicas, at its leader's request (KIP-497).

v2 has topic ids (KIP-841), v3 the epochs in which brokers fetched (KIP-903).
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

API = Api(
    AlterPartitionRequest,
    AlterPartitionResponse,
    answered_by=CONTROLLER,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
)
