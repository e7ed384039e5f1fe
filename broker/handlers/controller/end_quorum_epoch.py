"""EndQuorumEpoch (54): another controller says that it leads the quorum no more (KIP-595).

v1 has the candidates' directories and the leader's endpoints (KIP-853).
"""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from coordinator.quorum.voting import answer_end_quorum_epoch
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


async def end_quorum_epoch(call: HostCall[EndQuorumEpochRequest]) -> EndQuorumEpochResponse:
    return answer_end_quorum_epoch(call.host.quorum.leader, call.request, call.version, call.context.listener)


API = Api(EndQuorumEpochRequest, EndQuorumEpochResponse, end_quorum_epoch, of_cluster(CLUSTER_ACTION_CLUSTER))
