"""BrokerHeartbeat (63): a broker is alive, and would lead or stop (KIP-631).

v1 names log directories that have failed (KIP-858), v2 those that take no new replicas (KIP-1066).
"""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


async def broker_heartbeat(call: HostCall[BrokerHeartbeatRequest]) -> BrokerHeartbeatResponse:
    return await call.host.controller.broker_heartbeat(call.request)


API = Api(BrokerHeartbeatRequest, BrokerHeartbeatResponse, broker_heartbeat, of_cluster(CLUSTER_ACTION_CLUSTER))
