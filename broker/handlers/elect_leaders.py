"""ElectLeaders (43): elects preferred or any leaders for partitions (KIP-183, KIP-460).

v1 adds unclean elections, v2 is flexible. On a single node the leader is already the preferred replica.
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CLUSTER
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

API = Api(ElectLeadersRequest, ElectLeadersResponse, answered_by=CONTROLLER, authorize=whole(ALTER_CLUSTER))
