"""DeleteShareGroupState (86): the state of share partitions is forgotten (KIP-932)."""

from __future__ import annotations

from broker.authorisation import CLUSTER_ACTION_CLUSTER, by_handler
from broker.dispatch import Api, Call
from broker.share.state_requests import decided, named
from coordinator.share.records import ShareKey
from protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateData,
    DeleteStateResult,
    PartitionResult,
)
from protocol.types import Uuid


async def delete_share_group_state(call: Call[DeleteShareGroupStateRequest]) -> DeleteShareGroupStateResponse:
    return DeleteShareGroupStateResponse(results=[await one_topic(call, topic) for topic in named(call.request)])


async def one_topic(call: Call[DeleteShareGroupStateRequest], topic: DeleteStateData) -> DeleteStateResult:
    partitions = [await one_partition(call, topic.topic_id, each.partition) for each in topic.partitions]
    return DeleteStateResult(topic_id=topic.topic_id, partitions=partitions)


async def one_partition(call: Call[DeleteShareGroupStateRequest], topic_id: Uuid, index: int) -> PartitionResult:
    key = ShareKey(call.request.group_id, topic_id, index)
    _, failure = await decided(call.broker.shares, key, lambda shard, ticket, now_ms: shard.delete(key, ticket, now_ms))
    return PartitionResult(partition=index, error_code=failure.code, error_message=failure.message)


REQUIRES = by_handler(CLUSTER_ACTION_CLUSTER)
API = Api(DeleteShareGroupStateRequest, DeleteShareGroupStateResponse, delete_share_group_state, REQUIRES)
