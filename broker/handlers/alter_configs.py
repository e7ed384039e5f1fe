"""AlterConfigs (33): replaces all dynamic configs of a resource, as tools before KIP-339 do.

v1 is as v0, v2 is flexible.
"""

from __future__ import annotations

from broker.exchange.authorisation import Operation
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.config_access import of_configs
from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

API = Api(
    AlterConfigsRequest, AlterConfigsResponse, by_controller, authorize=of_configs(Operation.ALTER_CONFIGS, "responses")
)
