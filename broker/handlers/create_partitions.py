"""CreatePartitions (37): adds partitions to topics, placed by the controller or by assignment (KIP-195).

v1 is as v0, v2 is flexible, v3 is for quotas (KIP-599).
"""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_TOPIC, by_handler
from broker.requests.api import Api
from broker.requests.call import HostCall
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse


async def create_partitions(call: HostCall[CreatePartitionsRequest]) -> CreatePartitionsResponse:
    return await call.host.topics.create_partitions(call.request)


API = Api(CreatePartitionsRequest, CreatePartitionsResponse, create_partitions, by_handler(ALTER_TOPIC))
