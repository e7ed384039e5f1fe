"""WriteShareGroupState (85): stores the state of share partitions, for the brokers that lead them (KIP-932).

v1 adds the delivery-complete count (KIP-1226).
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_requests import answered
from coordinator.share.batches import StateBatch
from coordinator.share.key import ShareKey
from coordinator.share.shard import StateWrite
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

MAX_STATE_BATCHES: Final = 20_000
"""Maximum number of a partition's state batches. A share partition has at most 10,000 records in flight
(`group.share.partition.max.record.locks`), and the rest of the batch that was acquired last."""


async def write_share_group_state(call: Call[WriteShareGroupStateRequest]) -> WriteShareGroupStateResponse:
    def write(key: ShareKey, requested: PartitionData) -> Awaitable[None]:
        written = state_of(requested)
        return call.broker.shares.submit(key, lambda shard, ticket, now_ms: shard.write(key, written, ticket, now_ms))

    results = await answered(call.request, call.turns(), write, WriteStateResult, PartitionResult)
    return WriteShareGroupStateResponse(results=results)


def state_of(requested: PartitionData) -> StateWrite:
    """Returns the state in a request. Raises INVALID_REQUEST for too many batches."""
    if len(requested.state_batches) > MAX_STATE_BATCHES:
        message = f"{len(requested.state_batches)} state batches: at most {MAX_STATE_BATCHES} are allowed"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return StateWrite(
        requested.state_epoch,
        requested.leader_epoch,
        requested.start_offset,
        requested.delivery_complete_count,
        [
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in requested.state_batches
        ],
    )


API = Api(
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    write_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
