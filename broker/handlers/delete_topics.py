"""DeleteTopics (20): deletes topics, from the metadata at once, from the disk after file.delete.delay.ms.

v1 adds the throttle time, v4 is flexible, v5 adds messages to errors and may be refused over a quota (KIP-599), v6
deletes by id as well (KIP-516).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from broker.exchange.authorisation import DELETE_TOPIC, DESCRIBE_TOPIC, by_handler
from broker.requests.api import Api
from broker.requests.by_controller import asker_of
from broker.requests.call import HostCall
from coordinator.cluster.topics.names import EVERYTHING
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

FIRST_STRICT_VERSION: Final = 5
"""Before it, what is beyond the quota is deleted all the same, and the client waits."""


async def delete_topics(call: HostCall[DeleteTopicsRequest]) -> DeleteTopicsResponse:
    return await delete_permitted(call, EVERYTHING, EVERYTHING)


async def delete_permitted(
    call: HostCall[DeleteTopicsRequest], deletable: Container[str], describable: Container[str]
) -> DeleteTopicsResponse:
    """Has the controller delete what the client may delete, of what it may know."""
    asker = asker_of(call)._replace(deletable=deletable, describable=describable)
    return await call.host.mutation_quotas.charged(
        call.context,
        lambda charge: call.host.controller.submit(call.request, DeleteTopicsResponse, asker._replace(charge=charge)),
        is_strict=call.version >= FIRST_STRICT_VERSION,
    )


API = Api(DeleteTopicsRequest, DeleteTopicsResponse, delete_topics, by_handler(DESCRIBE_TOPIC, DELETE_TOPIC))
