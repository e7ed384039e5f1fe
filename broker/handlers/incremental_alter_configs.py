"""IncrementalAlterConfigs (44): sets, deletes, appends to and subtracts from single configs (KIP-339).

v1 is flexible. The levels of loggers are set in the process that answers (KIP-412).
"""

from __future__ import annotations

from broker.exchange.authorisation import Operation
from broker.requests.api import Api
from broker.requests.by_controller import by_controller
from broker.requests.call import HostCall
from broker.requests.config_access import of_configs
from broker.requests.logger_changes import set_own_loggers
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse


async def incremental_alter_configs(call: HostCall[IncrementalAlterConfigsRequest]) -> object:
    return await set_own_loggers(call, by_controller)


API = Api(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    incremental_alter_configs,
    authorize=of_configs(Operation.ALTER_CONFIGS, "responses"),
    here=set_own_loggers,
)
