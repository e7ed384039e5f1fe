"""ElectLeaders (43): elects preferred or any leaders for partitions (KIP-183, KIP-460).

v1 adds unclean elections, v2 is flexible. On one node the leader is the preferred one already.
"""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

API = Api(ElectLeadersRequest, ElectLeadersResponse, by_controller, of_cluster(ALTER_CLUSTER))
