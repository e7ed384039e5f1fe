"""AssignReplicasToDirs (73): a broker tells in which log directories its replicas are (KIP-858)."""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

API = Api(
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    by_controller,
    of_cluster(CLUSTER_ACTION_CLUSTER),
)
