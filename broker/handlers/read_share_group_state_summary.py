"""ReadShareGroupStateSummary (87): reads the epochs and start offsets of share partitions (KIP-932).

v1 adds the delivery-complete count (KIP-1226).
"""

from __future__ import annotations

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_requests import answered
from coordinator.engine.result import Ticket
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareResult
from coordinator.share.shard import ShareShard, Summary
from protocol.errors import ErrorCode
from protocol.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)


async def read_share_group_state_summary(
    call: Call[ReadShareGroupStateSummaryRequest],
) -> ReadShareGroupStateSummaryResponse:
    async def read(key: ShareKey, requested: PartitionData) -> PartitionResult:
        def decide(shard: ShareShard, ticket: Ticket[Summary], now_ms: int) -> ShareResult:
            return shard.summary(key, ticket, now_ms)

        summary = await call.broker.shares.submit(key, decide)
        return PartitionResult(
            partition=requested.partition,
            error_code=ErrorCode.NONE,
            state_epoch=summary.state_epoch,
            leader_epoch=summary.leader_epoch,
            start_offset=summary.start_offset,
            delivery_complete_count=summary.delivery_complete_count,
        )

    results = await answered(call.request, call.turns(), read, ReadStateSummaryResult, PartitionResult)
    return ReadShareGroupStateSummaryResponse(results=results)


API = Api(
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    read_share_group_state_summary,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
