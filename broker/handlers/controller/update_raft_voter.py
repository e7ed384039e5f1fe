"""UpdateRaftVoter (82): a voter reports its endpoints, and the versions that it supports (KIP-853)."""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse


async def update_raft_voter(call: Call[UpdateRaftVoterRequest]) -> object:
    return await call.host.quorum.answer(call.request, call.version, call.context.listener)


API = Api(UpdateRaftVoterRequest, UpdateRaftVoterResponse, update_raft_voter, authorize=whole(CLUSTER_ACTION_CLUSTER))
