"""CreateTopics (19): creates topics, by partition count or by assignment, with configs.

v1 adds messages to errors and validate-only, v2 the throttle time, v4 leaves counts to the broker's defaults (KIP-464),
v5 is flexible and reports what was created (KIP-525), v6 may be refused over a quota (KIP-599), v7 returns the topic id
(KIP-516).
"""

from __future__ import annotations

from typing import Final

from broker.exchange.authorisation import CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_CONFIGS_TOPIC, by_handler
from broker.requests.api import Api
from broker.requests.by_controller import asker_of
from broker.requests.call import HostCall
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

FIRST_STRICT_VERSION: Final = 6
"""Before it, what is beyond the quota is created all the same, and the client waits."""


async def create_topics(call: HostCall[CreateTopicsRequest]) -> CreateTopicsResponse:
    return await call.host.mutation_quotas.charged(
        call.context,
        lambda charge: call.host.topics.create(call.request, asker_of(call)._replace(charge=charge)),
        is_strict=call.version >= FIRST_STRICT_VERSION,
    )


REQUIRES = by_handler(CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_CONFIGS_TOPIC)
API = Api(CreateTopicsRequest, CreateTopicsResponse, create_topics, REQUIRES)
