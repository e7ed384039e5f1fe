"""InitializeShareGroupState (83): creates the initial state of share partitions (KIP-932)."""

from __future__ import annotations

from collections.abc import Awaitable

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_requests import answered
from coordinator.share.key import ShareKey
from protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)


async def initialize_share_group_state(
    call: Call[InitializeShareGroupStateRequest],
) -> InitializeShareGroupStateResponse:
    def initialize(key: ShareKey, requested: PartitionData) -> Awaitable[None]:
        state_epoch, start_offset = requested.state_epoch, requested.start_offset
        return call.broker.shares.submit(
            key, lambda shard, ticket, now_ms: shard.initialize(key, state_epoch, start_offset, ticket, now_ms)
        )

    results = await answered(
        call.request, call.turns(), initialize, InitializeStateResult, PartitionResult, needs_partitions=False
    )
    return InitializeShareGroupStateResponse(results=results)


API = Api(
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    initialize_share_group_state,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
