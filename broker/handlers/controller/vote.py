"""Vote (52): another controller asks for the vote of this controller (KIP-595).

v1 names the receiver (KIP-853), v2 has pre-votes (KIP-996).
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.vote import VoteRequest, VoteResponse


async def vote(call: Call[VoteRequest]) -> object:
    return await call.host.quorum.answer(call.request, call.version, call.context.listener)


API = Api(VoteRequest, VoteResponse, vote, authorize=whole(CLUSTER_ACTION_CLUSTER))
