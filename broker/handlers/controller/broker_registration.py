"""BrokerRegistration (62): a broker that starts registers with the controller (KIP-631).

v1 and v2 were for ZooKeeper migrations and log directories (KIP-858), v3 has the broker epoch before a clean shutdown
(KIP-966), v4 lets features begin at level 0.
"""

from __future__ import annotations

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.rules import whole
from protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

API = Api(BrokerRegistrationRequest, BrokerRegistrationResponse, by_controller, authorize=whole(CLUSTER_ACTION_CLUSTER))
