"""InitializeShareGroupState (83): creates the initial state of share partitions (KIP-932)."""

from __future__ import annotations

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_operations import InitializeState, StateResponse
from broker.share.state_requests import answered
from protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)


async def initialize_share_group_state(call: Call[InitializeShareGroupStateRequest]) -> StateResponse:
    return await answered(InitializeState, call.request, call.turns(), call.broker.shares)


API = Api(
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    initialize_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
