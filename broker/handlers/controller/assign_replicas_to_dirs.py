"""AssignReplicasToDirs (73): a broker reports the log directories of its replicas (KIP-858)."""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.rules import whole
from protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

API = Api(
    AssignReplicasToDirsRequest, AssignReplicasToDirsResponse, by_controller, authorize=whole(CLUSTER_ACTION_CLUSTER)
)
