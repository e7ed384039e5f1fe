"""IncrementalAlterConfigs (44): sets, deletes, appends to and subtracts from single configs (KIP-339).

v1 is flexible. The levels of loggers are set in the process that is asked (KIP-412).
"""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_CONFIGS_CLUSTER, ALTER_CONFIGS_GROUP, ALTER_CONFIGS_TOPIC, by_handler
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.call import HostCall
from broker.requests.logger_changes import set_own_loggers
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse


async def incremental_alter_configs(call: HostCall[IncrementalAlterConfigsRequest]) -> object:
    return await set_own_loggers(call, by_controller)


REQUIRES = by_handler(ALTER_CONFIGS_CLUSTER, ALTER_CONFIGS_TOPIC, ALTER_CONFIGS_GROUP)
API = Api(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    incremental_alter_configs,
    REQUIRES,
    here=set_own_loggers,
)
