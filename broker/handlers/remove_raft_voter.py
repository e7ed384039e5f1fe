"""RemoveRaftVoter (81): removes a voter from the quorum, which has one and keeps it (KIP-853)."""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from coordinator.quorum.voters import error_of_removed
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


async def remove_raft_voter(call: HostCall[RemoveRaftVoterRequest]) -> RemoveRaftVoterResponse:
    error = error_of_removed(call.host.quorum.leader.voter, call.request)
    return RemoveRaftVoterResponse(error_code=error.code, error_message=error.message)


API = Api(RemoveRaftVoterRequest, RemoveRaftVoterResponse, remove_raft_voter, of_cluster(ALTER_CLUSTER))
