"""WriteShareGroupState (85): what has changed of share partitions, from the brokers that lead them (KIP-932).

v1 adds the delivery-complete count (KIP-1226).
"""

from __future__ import annotations

from functools import partial

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, by_handler
from broker.requests.api import Api
from broker.requests.call import Call
from broker.share.state_requests import answered, decided, is_whole
from coordinator.share.batches import StateBatch
from coordinator.share.records import ShareKey
from coordinator.share.shard import Written
from protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from protocol.types import Uuid


async def write_share_group_state(call: Call[WriteShareGroupStateRequest]) -> WriteShareGroupStateResponse:
    if not is_whole(call.request):
        return WriteShareGroupStateResponse(results=[])
    results = [
        WriteStateResult(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in await answered(call.request, partial(one_partition, call))
    ]
    return WriteShareGroupStateResponse(results=results)


async def one_partition(
    call: Call[WriteShareGroupStateRequest], topic_id: Uuid, wanted: PartitionData
) -> PartitionResult:
    key = ShareKey(call.request.group_id, topic_id, wanted.partition)
    batches = [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in wanted.state_batches
    ]
    written = Written(
        wanted.state_epoch, wanted.leader_epoch, wanted.start_offset, wanted.delivery_complete_count, batches
    )
    _, failure = await decided(
        call.broker.shares, key, lambda shard, ticket, now_ms: shard.write(key, written, ticket, now_ms)
    )
    return PartitionResult(partition=wanted.partition, error_code=failure.code, error_message=failure.message)


REQUIRES = by_handler(CLUSTER_ACTION_CLUSTER)
API = Api(WriteShareGroupStateRequest, WriteShareGroupStateResponse, write_share_group_state, REQUIRES)
