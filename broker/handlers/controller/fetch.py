"""Fetch (1): a replica of the metadata log fetches from the quorum's leader (KIP-595).

Followers name their directory from v17 on (KIP-853), and the high watermark that they know from v18 on (KIP-1166).
There are no fetch sessions, and no other topics.
"""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from protocol.messages.fetch import FetchRequest, FetchResponse


async def fetch(call: HostCall[FetchRequest]) -> FetchResponse:
    return await call.host.quorum.fetch(call.request, call.version, call.context.listener)


API = Api(FetchRequest, FetchResponse, fetch, of_cluster(CLUSTER_ACTION_CLUSTER))
