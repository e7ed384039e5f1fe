"""InitializeShareGroupState (83): creates the initial state of share partitions (KIP-932)."""

from __future__ import annotations

from functools import partial

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_requests import answered, submitted
from coordinator.share.key import ShareKey
from protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)
from protocol.types import Uuid


async def initialize_share_group_state(
    call: Call[InitializeShareGroupStateRequest],
) -> InitializeShareGroupStateResponse:
    results = [
        InitializeStateResult(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in await answered(call.request, call.turns(), partial(one_partition, call))
    ]
    return InitializeShareGroupStateResponse(results=results)


async def one_partition(
    call: Call[InitializeShareGroupStateRequest], topic_id: Uuid, requested: PartitionData
) -> PartitionResult:
    key = ShareKey(call.request.group_id, topic_id, requested.partition)
    _, failure = await submitted(
        call.broker.shares,
        key,
        lambda shard, ticket, now_ms: shard.initialize(
            key, requested.state_epoch, requested.start_offset, ticket, now_ms
        ),
    )
    return PartitionResult(partition=requested.partition, error_code=failure.code, error_message=failure.message)


API = Api(
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    initialize_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
