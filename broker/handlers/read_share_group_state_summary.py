"""ReadShareGroupStateSummary (87): reads the epochs and start offsets of share partitions (KIP-932).

v1 adds the delivery-complete count (KIP-1226).
"""

from __future__ import annotations

from functools import partial

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_requests import answered, is_whole, submitted
from coordinator.engine.result import Ticket
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareResult
from coordinator.share.shard import ShareShard, Summary
from protocol.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from protocol.types import Uuid


async def read_share_group_state_summary(
    call: Call[ReadShareGroupStateSummaryRequest],
) -> ReadShareGroupStateSummaryResponse:
    if not is_whole(call.request):
        return ReadShareGroupStateSummaryResponse(results=[])
    results = [
        ReadStateSummaryResult(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in await answered(call.request, call.turns(), partial(one_partition, call))
    ]
    return ReadShareGroupStateSummaryResponse(results=results)


async def one_partition(
    call: Call[ReadShareGroupStateSummaryRequest], topic_id: Uuid, requested: PartitionData
) -> PartitionResult:
    key = ShareKey(call.request.group_id, topic_id, requested.partition)

    def decide(shard: ShareShard, ticket: Ticket[Summary], now_ms: int) -> ShareResult:
        return shard.summary(key, ticket, now_ms)

    outcome = await submitted(call.broker.shares, key, decide)
    decided_summary, failure = outcome
    summary = decided_summary or Summary(start_offset=0)
    return PartitionResult(
        partition=requested.partition,
        error_code=failure.code,
        error_message=failure.message,
        state_epoch=summary.state_epoch,
        leader_epoch=summary.leader_epoch,
        start_offset=summary.start_offset,
        delivery_complete_count=summary.delivery_complete_count,
    )


API = Api(
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    read_share_group_state_summary,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
