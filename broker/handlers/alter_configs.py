"""AlterConfigs (33): replaces all dynamic configs of a resource, as tools before KIP-339 do.

v1 is as v0, v2 is flexible.
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.by_controller import by_controller
from broker.dispatch.config_access import of_configs
from broker.request.authorisation import Operation
from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

API = Api(
    AlterConfigsRequest, AlterConfigsResponse, by_controller, authorize=of_configs(Operation.ALTER_CONFIGS, "responses")
)
