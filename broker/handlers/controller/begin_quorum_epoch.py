"""BeginQuorumEpoch (53): another controller announces that it leads the quorum (KIP-595).

v1 names the receiver and has the leader's endpoints (KIP-853).
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse


async def begin_quorum_epoch(call: Call[BeginQuorumEpochRequest]) -> object:
    return await call.host.quorum.answer(call.request, call.version, call.context.listener)


API = Api(
    BeginQuorumEpochRequest, BeginQuorumEpochResponse, begin_quorum_epoch, authorize=whole(CLUSTER_ACTION_CLUSTER)
)
