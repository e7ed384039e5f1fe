"""IncrementalAlterConfigs (44): sets, deletes, appends to and subtracts from single configs (KIP-339).

v1 is flexible. Broker loggers are those of a JVM, and are refused.
"""

from __future__ import annotations

from broker.dispatch import Api, Call
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse


async def incremental_alter_configs(call: Call[IncrementalAlterConfigsRequest]) -> IncrementalAlterConfigsResponse:
    return await call.broker.cluster.incremental_alter_configs(call.request)


API = Api(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, incremental_alter_configs)
