"""IncrementalAlterConfigs (44): sets, deletes, appends to and subtracts from single configs (KIP-339).

v1 is flexible. The levels of loggers are set in the process that answers (KIP-412).
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.by_controller import by_controller
from broker.dispatch.call import HostCall
from broker.dispatch.config_access import of_configs
from broker.dispatch.logger_changes import set_own_loggers
from broker.request.authorisation import Operation
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
