"""AddRaftVoter (80): adds a voter to the quorum once it has caught up (KIP-853).

v1 may be answered before the change is committed (KIP-1186).
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CLUSTER
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


async def add_raft_voter(call: Call[AddRaftVoterRequest]) -> object:
    return await call.host.quorum.answer(call.request, call.version, call.context.listener)


API = Api(
    AddRaftVoterRequest, AddRaftVoterResponse, add_raft_voter, answered_by=CONTROLLER, authorize=whole(ALTER_CLUSTER)
)
