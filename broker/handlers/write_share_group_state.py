"""WriteShareGroupState (85): stores the state of share partitions, for the brokers that lead them (KIP-932).

v1 adds the delivery-complete count (KIP-1226).
"""

from __future__ import annotations

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_operations import StateResponse, WriteState
from broker.share.state_requests import answered
from protocol.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse


async def write_share_group_state(call: Call[WriteShareGroupStateRequest]) -> StateResponse:
    return await answered(WriteState, call.request, call.turns(), call.broker.shares)


API = Api(
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    write_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
