"""ReadShareGroupStateSummary (87): reads the epochs and start offsets of share partitions (KIP-932).

v1 adds the delivery-complete count (KIP-1226).
"""

from __future__ import annotations

from broker.dispatch.api import SHARE_PARTITIONS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from broker.share.state_operations import ReadSummary, StateResponse
from broker.share.state_requests import answered
from protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)


async def read_share_group_state_summary(call: Call[ReadShareGroupStateSummaryRequest]) -> StateResponse:
    return await answered(ReadSummary, call.request, call.turns(), call.broker.shares)


API = Api(
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    read_share_group_state_summary,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
    entries=(SHARE_PARTITIONS,),
    explains=True,
)
