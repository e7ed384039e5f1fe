"""DeleteShareGroupState (86): deletes the state of share partitions (KIP-932)."""

from __future__ import annotations

from collections.abc import Awaitable

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_requests import answered
from coordinator.share.key import ShareKey
from protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)


async def delete_share_group_state(call: Call[DeleteShareGroupStateRequest]) -> DeleteShareGroupStateResponse:
    def delete(key: ShareKey, _: PartitionData) -> Awaitable[None]:
        return call.broker.shares.submit(key, lambda shard, ticket, now_ms: shard.delete(key, ticket, now_ms))

    results = await answered(call.request, call.turns(), delete, DeleteStateResult, PartitionResult)
    return DeleteShareGroupStateResponse(results=results)


API = Api(
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    delete_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
