"""UpdateRaftVoter (82): a voter tells where it listens, and which versions it speaks (KIP-853)."""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from coordinator.quorum.voters import answer_update
from protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse


async def update_raft_voter(call: HostCall[UpdateRaftVoterRequest]) -> UpdateRaftVoterResponse:
    return answer_update(call.host.quorum.leader, call.request, call.context.listener)


API = Api(UpdateRaftVoterRequest, UpdateRaftVoterResponse, update_raft_voter, of_cluster(CLUSTER_ACTION_CLUSTER))
