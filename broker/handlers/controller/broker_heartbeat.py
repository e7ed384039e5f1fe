"""BrokerHeartbeat (63): a broker reports that it is alive, and asks to be unfenced or to shut down (KIP-631).

v1 names log directories that have failed (KIP-858), v2 those that take no new replicas (KIP-1066).
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

API = Api(
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, answered_by=CONTROLLER, authorize=whole(CLUSTER_ACTION_CLUSTER)
)
