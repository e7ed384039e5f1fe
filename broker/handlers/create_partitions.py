"""CreatePartitions (37): adds partitions to topics, placed by the controller or by assignment (KIP-195).

v1 is as v0, v2 is flexible, v3 may be refused over a quota (KIP-599).
"""

from __future__ import annotations

from typing import Final

from broker.exchange.authorisation import ALTER_TOPIC, by_handler
from broker.requests.api import Api
from broker.requests.by_controller import asker_of
from broker.requests.call import HostCall
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

FIRST_STRICT_VERSION: Final = 3
"""Before it, what is beyond the quota is created all the same, and the client waits."""


async def create_partitions(call: HostCall[CreatePartitionsRequest]) -> CreatePartitionsResponse:
    return await call.host.mutation_quotas.charged(
        call.context,
        lambda charge: call.host.topics.create_partitions(call.request, asker_of(call)._replace(charge=charge)),
        is_strict=call.version >= FIRST_STRICT_VERSION,
    )


API = Api(CreatePartitionsRequest, CreatePartitionsResponse, create_partitions, by_handler(ALTER_TOPIC))
