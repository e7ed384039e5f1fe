"""Fetch (1): a replica of the metadata log fetches from the quorum's leader (KIP-595).

Followers name their directory from v17 on (KIP-853), and their high watermark from v18 on (KIP-1166). A controller has
no fetch sessions and no other topics.
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.fetch import FetchRequest, FetchResponse


async def fetch(call: Call[FetchRequest]) -> object:
    return await call.host.quorum.answer(call.request, call.version, call.context.listener)


API = Api(FetchRequest, FetchResponse, fetch, authorize=whole(CLUSTER_ACTION_CLUSTER))
