"""BrokerRegistration (62): a broker that starts registers with the controller (KIP-631).

v1 and v2 were for ZooKeeper migrations and log directories (KIP-858), v3 has the broker epoch before a clean shutdown
(KIP-966), v4 lets features begin at level 0.
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER
from protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

API = Api(
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    answered_by=CONTROLLER,
    authorize=whole(CLUSTER_ACTION_CLUSTER),
)
