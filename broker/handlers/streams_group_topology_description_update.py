"""StreamsGroupTopologyDescriptionUpdate (93): rejected, because no plugin stores topology descriptions (KIP-1331).

Apache Kafka without such a plugin rejects it with the same error. No heartbeat asks a member to send it.
"""

from __future__ import annotations

from broker.dispatch.api import STREAMS_GROUPS, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import of_group, whole
from broker.request.authorisation import READ_GROUP
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)


async def streams_group_topology_description_update(
    call: Call[StreamsGroupTopologyDescriptionUpdateRequest],
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    raise KafkaError(
        ErrorCode.UNSUPPORTED_VERSION, "The broker has no streams group topology description plugin configured."
    )


API = Api(
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
    streams_group_topology_description_update,
    authorize=whole(READ_GROUP, of_group),
    protocol=STREAMS_GROUPS,
    explains=True,
)
