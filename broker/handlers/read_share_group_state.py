"""ReadShareGroupState (84): reads the state of share partitions, for the brokers that lead them (KIP-932)."""

from __future__ import annotations

from functools import partial

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_requests import answered, is_whole, submitted
from coordinator.engine.result import Ticket
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareResult, ShareState
from coordinator.share.shard import ShareShard
from protocol.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)
from protocol.types import Uuid


async def read_share_group_state(call: Call[ReadShareGroupStateRequest]) -> ReadShareGroupStateResponse:
    if not is_whole(call.request):
        return ReadShareGroupStateResponse(results=[])
    results = [
        ReadStateResult(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in await answered(call.request, call.turns(), partial(one_partition, call))
    ]
    return ReadShareGroupStateResponse(results=results)


async def one_partition(
    call: Call[ReadShareGroupStateRequest], topic_id: Uuid, requested: PartitionData
) -> PartitionResult:
    key = ShareKey(call.request.group_id, topic_id, requested.partition)

    def decide(shard: ShareShard, ticket: Ticket[ShareState], now_ms: int) -> ShareResult:
        return shard.read(key, requested.leader_epoch, ticket, now_ms)

    outcome = await submitted(call.broker.shares, key, decide)
    state, failure = outcome
    result = PartitionResult(
        partition=requested.partition,
        error_code=failure.code,
        error_message=failure.message,
        state_epoch=0,
        start_offset=0,
        state_batches=[],
    )
    if state is not None:
        result.state_epoch, result.start_offset = state.state_epoch, state.start_offset
        result.state_batches = [
            StateBatch(first_offset=first, last_offset=last, delivery_state=delivery, delivery_count=count)
            for first, last, delivery, count in state.batches
        ]
    return result


API = Api(
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    read_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
