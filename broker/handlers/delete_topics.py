"""DeleteTopics (20): deletes topics, from the metadata at once, from the disk after file.delete.delay.ms.

v1 adds the throttle time, v4 is flexible, v5 adds messages to errors and may be rejected because of a quota (KIP-599),
v6 deletes by id as well (KIP-516).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from broker.dispatch.api import CONTROLLER, Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.rules import own, unless
from broker.request.authorisation import DELETE_CLUSTER, DELETE_TOPIC, DESCRIBE_TOPIC
from coordinator.cluster.topics.names import EVERYTHING
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

FIRST_STRICT_VERSION: Final = 5
"""First version that rejects requests beyond the quota; for earlier versions the topics are deleted, and the client is
throttled."""


async def delete_topics(call: Call[DeleteTopicsRequest]) -> DeleteTopicsResponse:
    return await delete_permitted(call, EVERYTHING, EVERYTHING)


async def delete_permitted(
    call: Call[DeleteTopicsRequest], deletable: Container[str], describable: Container[str]
) -> DeleteTopicsResponse:
    """Has the controller delete the topics that the client may describe and delete."""
    sender = call.sender._replace(deletable=deletable, describable=describable)
    response = await call.host.mutation_quotas.charged(
        call.context,
        lambda quota: call.host.controller.submit(call.request, DeleteTopicsResponse, sender._replace(quota=quota)),
        is_strict=call.version >= FIRST_STRICT_VERSION,
    )
    await call.host.new_logs.changes.over()
    return response


async def permitted_topics(call: Call[DeleteTopicsRequest], _: Handle) -> DeleteTopicsResponse:
    """Authorizes the client for each topic; without DESCRIBE the answer hides whether the topic exists."""
    image, topics = call.host.image, call.request.topics
    by_id = (image.topic_by_id(topic.topic_id) for topic in topics if topic.name is None)
    names = {topic.name for topic in topics if topic.name is not None}
    names.update(call.request.topic_names or ())
    names.update(topic.name for topic in by_id if topic is not None)
    describable = await call.permitted(DESCRIBE_TOPIC, names)
    return await delete_permitted(call, await call.permitted(DELETE_TOPIC, names), describable)


API = Api(
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    delete_topics,
    answered_by=CONTROLLER,
    authorize=unless(DELETE_CLUSTER, own(permitted_topics, DESCRIBE_TOPIC, DELETE_TOPIC)),
)
