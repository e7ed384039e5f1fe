"""ReadShareGroupState (84): reads the state of share partitions, for the brokers that lead them (KIP-932)."""

from __future__ import annotations

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_requests import answered
from coordinator.engine.result import Ticket
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareResult, ShareState
from coordinator.share.shard import ShareShard
from protocol.errors import ErrorCode
from protocol.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)


async def read_share_group_state(call: Call[ReadShareGroupStateRequest]) -> ReadShareGroupStateResponse:
    async def read(key: ShareKey, requested: PartitionData) -> PartitionResult:
        def decide(shard: ShareShard, ticket: Ticket[ShareState], now_ms: int) -> ShareResult:
            return shard.read(key, requested.leader_epoch, ticket, now_ms)

        state = await call.broker.shares.submit(key, decide)
        return PartitionResult(
            partition=requested.partition,
            error_code=ErrorCode.NONE,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[
                StateBatch(first_offset=first, last_offset=last, delivery_state=delivery, delivery_count=count)
                for first, last, delivery, count in state.batches
            ],
        )

    results = await answered(call.request, call.turns(), read, ReadStateResult, PartitionResult)
    return ReadShareGroupStateResponse(results=results)


API = Api(
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    read_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
