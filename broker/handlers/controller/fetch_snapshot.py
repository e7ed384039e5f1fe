"""FetchSnapshot (59): a replica of the metadata log fetches a piece of a snapshot (KIP-630).

v1 has the replica's directory and the leader's endpoint (KIP-853).
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse


async def fetch_snapshot(call: Call[FetchSnapshotRequest]) -> object:
    return await call.host.quorum.answer(call.request, call.version, call.context.listener)


API = Api(FetchSnapshotRequest, FetchSnapshotResponse, fetch_snapshot, authorize=whole(CLUSTER_ACTION_CLUSTER))
