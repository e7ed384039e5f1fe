"""ReadShareGroupStateSummary (87): epochs and start offsets of share partitions (KIP-932).

v1 adds the delivery-complete count (KIP-1226).
"""

from __future__ import annotations

from broker.authorisation import CLUSTER_ACTION_CLUSTER, by_handler
from broker.dispatch import Api, Call
from broker.share.state_requests import decided, named
from coordinator.runtime import Ticket
from coordinator.share.records import ShareKey, ShareOutcome
from coordinator.share.shard import ShareShard, Summary
from protocol.messages.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryData,
    ReadStateSummaryResult,
)
from protocol.types import Uuid


async def read_share_group_state_summary(
    call: Call[ReadShareGroupStateSummaryRequest],
) -> ReadShareGroupStateSummaryResponse:
    return ReadShareGroupStateSummaryResponse(results=[await one_topic(call, topic) for topic in named(call.request)])


async def one_topic(
    call: Call[ReadShareGroupStateSummaryRequest], topic: ReadStateSummaryData
) -> ReadStateSummaryResult:
    partitions = [await one_partition(call, topic.topic_id, each.partition) for each in topic.partitions]
    return ReadStateSummaryResult(topic_id=topic.topic_id, partitions=partitions)


async def one_partition(call: Call[ReadShareGroupStateSummaryRequest], topic_id: Uuid, index: int) -> PartitionResult:
    key = ShareKey(call.request.group_id, topic_id, index)

    def decide(shard: ShareShard, ticket: Ticket[Summary], now_ms: int) -> ShareOutcome:
        return shard.summary(key, ticket, now_ms)

    answered = await decided(call.broker.shares, key, decide)
    found, failure = answered
    summary = found or Summary(start_offset=0)
    return PartitionResult(
        partition=index,
        error_code=failure.code,
        error_message=failure.message,
        state_epoch=summary.state_epoch,
        leader_epoch=summary.leader_epoch,
        start_offset=summary.start_offset,
        delivery_complete_count=summary.delivery_complete_count,
    )


REQUIRES = by_handler(CLUSTER_ACTION_CLUSTER)
API = Api(
    ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse, read_share_group_state_summary, REQUIRES
)
