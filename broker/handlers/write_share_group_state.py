"""WriteShareGroupState (85): stores the state of share partitions, for the brokers that lead them (KIP-932).

v1 adds the delivery-complete count (KIP-1226).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_requests import answered, is_whole, submitted
from coordinator.share.batches import StateBatch
from coordinator.share.key import ShareKey
from coordinator.share.shard import StateWrite
from protocol.errors import ErrorCode
from protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from protocol.types import Uuid

MAX_STATE_BATCHES: Final = 20_000
"""Maximum number of a partition's state batches. A share partition has at most 10,000 records in flight
(`group.share.partition.max.record.locks`), and the rest of the batch that was acquired last."""


async def write_share_group_state(call: Call[WriteShareGroupStateRequest]) -> WriteShareGroupStateResponse:
    if not is_whole(call.request):
        return WriteShareGroupStateResponse(results=[])
    results = [
        WriteStateResult(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in await answered(call.request, call.turns(), partial(one_partition, call))
    ]
    return WriteShareGroupStateResponse(results=results)


async def one_partition(
    call: Call[WriteShareGroupStateRequest], topic_id: Uuid, requested: PartitionData
) -> PartitionResult:
    key = ShareKey(call.request.group_id, topic_id, requested.partition)
    if len(requested.state_batches) > MAX_STATE_BATCHES:
        message = f"{len(requested.state_batches)} state batches: at most {MAX_STATE_BATCHES} are allowed"
        return PartitionResult(
            partition=requested.partition, error_code=ErrorCode.INVALID_REQUEST, error_message=message
        )
    batches = [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in requested.state_batches
    ]
    written = StateWrite(
        requested.state_epoch,
        requested.leader_epoch,
        requested.start_offset,
        requested.delivery_complete_count,
        batches,
    )
    _, failure = await submitted(
        call.broker.shares, key, lambda shard, ticket, now_ms: shard.write(key, written, ticket, now_ms)
    )
    return PartitionResult(partition=requested.partition, error_code=failure.code, error_message=failure.message)


API = Api(
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    write_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
