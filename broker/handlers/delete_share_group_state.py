"""DeleteShareGroupState (86): deletes the state of share partitions (KIP-932)."""

from __future__ import annotations

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_operations import DeleteState, StateResponse
from broker.share.state_requests import answered
from protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse


async def delete_share_group_state(call: Call[DeleteShareGroupStateRequest]) -> StateResponse:
    return await answered(DeleteState, call.request, call.turns(), call.broker.shares)


API = Api(
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    delete_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
