"""RemoveRaftVoter (81): removes a voter from the quorum, except the last one (KIP-853)."""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CLUSTER
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


async def remove_raft_voter(call: Call[RemoveRaftVoterRequest]) -> object:
    return await call.host.quorum.answer(call.request, call.version, call.context.listener)


API = Api(
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    remove_raft_voter,
    answered_by=CONTROLLER,
    authorize=whole(ALTER_CLUSTER),
)
