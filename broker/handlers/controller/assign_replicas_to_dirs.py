"""AssignReplicasToDirs (73): a broker tells in which log directories its replicas are (KIP-858)."""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


async def assign_replicas_to_dirs(call: HostCall[AssignReplicasToDirsRequest]) -> AssignReplicasToDirsResponse:
    return await call.host.controller.assign_replicas_to_dirs(call.request)


API = Api(
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    assign_replicas_to_dirs,
    of_cluster(CLUSTER_ACTION_CLUSTER),
)
