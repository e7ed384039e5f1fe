"""DeleteShareGroupState (86): deletes the state of share partitions (KIP-932)."""

from __future__ import annotations

from functools import partial

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_requests import answered, is_whole, submitted
from coordinator.share.key import ShareKey
from protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)
from protocol.types import Uuid


async def delete_share_group_state(call: Call[DeleteShareGroupStateRequest]) -> DeleteShareGroupStateResponse:
    if not is_whole(call.request):
        return DeleteShareGroupStateResponse(results=[])
    results = [
        DeleteStateResult(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in await answered(call.request, call.turns(), partial(one_partition, call))
    ]
    return DeleteShareGroupStateResponse(results=results)


async def one_partition(
    call: Call[DeleteShareGroupStateRequest], topic_id: Uuid, requested: PartitionData
) -> PartitionResult:
    key = ShareKey(call.request.group_id, topic_id, requested.partition)
    _, failure = await submitted(
        call.broker.shares, key, lambda shard, ticket, now_ms: shard.delete(key, ticket, now_ms)
    )
    return PartitionResult(partition=requested.partition, error_code=failure.code, error_message=failure.message)


API = Api(
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    delete_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
