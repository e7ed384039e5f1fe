"""CreatePartitions (37): more partitions for topics, placed by the broker or by assignment (KIP-195).

v1 is as v0, v2 is flexible, v3 is for quotas (KIP-599).
"""

from __future__ import annotations

from broker.requests.authorisation import ALTER_TOPIC, by_handler
from broker.requests.dispatch import Api, Call
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse


async def create_partitions(call: Call[CreatePartitionsRequest]) -> CreatePartitionsResponse:
    return await call.broker.create_partitions(call.request)


API = Api(CreatePartitionsRequest, CreatePartitionsResponse, create_partitions, by_handler(ALTER_TOPIC))
