"""CreatePartitions (37): adds partitions to topics, placed by the controller or by assignment (KIP-195).

v1 is as v0, v2 is flexible, v3 may be rejected because of a quota (KIP-599).
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.rules import add_rejections, denial, named_once, own, split
from broker.request.authorisation import ALTER_TOPIC
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse


async def create_partitions(call: Call[CreatePartitionsRequest]) -> CreatePartitionsResponse:
    return await call.host.topics.create_partitions(call.request, call.sender)


async def permitted_topics(call: Call[CreatePartitionsRequest], handle: Handle) -> CreatePartitionsResponse:
    """Authorizes the client for each topic in the request."""
    request = call.request
    once = named_once(topic.name for topic in request.topics)
    request.topics, denied = await split(
        call, ALTER_TOPIC, request.topics, lambda topic: topic.name if topic.name in once else None
    )
    response: CreatePartitionsResponse = await handle(call)
    await add_rejections(call, response, "results", denied, denial(ALTER_TOPIC))
    return response


API = Api(
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    create_partitions,
    answered_by=CONTROLLER,
    authorize=own(permitted_topics, ALTER_TOPIC),
    strict_since=3,
)
