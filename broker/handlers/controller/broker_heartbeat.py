"""BrokerHeartbeat (63): a broker is alive, and would lead or stop (KIP-631).

v1 names log directories that have failed (KIP-858), v2 those that take no new replicas (KIP-1066).
"""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

API = Api(BrokerHeartbeatRequest, BrokerHeartbeatResponse, by_controller, of_cluster(CLUSTER_ACTION_CLUSTER))
