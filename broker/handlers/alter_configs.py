"""AlterConfigs (33): replaces all dynamic configs of a resource, as tools before KIP-339 do.

v1 is as v0, v2 is flexible.
"""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_CONFIGS_CLUSTER, ALTER_CONFIGS_GROUP, ALTER_CONFIGS_TOPIC, by_handler
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

REQUIRES = by_handler(ALTER_CONFIGS_CLUSTER, ALTER_CONFIGS_TOPIC, ALTER_CONFIGS_GROUP)
API = Api(AlterConfigsRequest, AlterConfigsResponse, by_controller, REQUIRES)
