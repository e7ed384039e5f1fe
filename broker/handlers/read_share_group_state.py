"""ReadShareGroupState (84): reads the state of share partitions, for the brokers that lead them (KIP-932)."""

from __future__ import annotations

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_operations import ReadState, StateResponse
from broker.share.state_requests import answered
from protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse


async def read_share_group_state(call: Call[ReadShareGroupStateRequest]) -> StateResponse:
    return await answered(ReadState, call.request, call.turns(), call.broker.shares)


API = Api(
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    read_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
