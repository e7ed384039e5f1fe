"""AssignReplicasToDirs (73): a broker reports the log directories of its replicas (KIP-858)."""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

API = Api(
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    answered_by=CONTROLLER,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
)
