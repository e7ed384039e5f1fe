"""EndQuorumEpoch (54): another controller announces that it no longer leads the quorum (KIP-595).

v1 has the candidates' directories and the leader's endpoints (KIP-853).
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


async def end_quorum_epoch(call: Call[EndQuorumEpochRequest]) -> object:
    return await call.host.quorum.answer(call.request, call.version, call.context.listener)


API = Api(EndQuorumEpochRequest, EndQuorumEpochResponse, end_quorum_epoch, authorize=whole(CLUSTER_ACTION_CLUSTER))
