"""DeleteTopics (20): deletes topics, from the metadata at once, from the disk after file.delete.delay.ms.

v1 adds the throttle time, v4 is flexible, v5 adds messages to errors and may be rejected because of a quota (KIP-599),
v6 deletes by id as well (KIP-516).
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.rules import own, unless
from broker.request.authorisation import DELETE_CLUSTER, DELETE_TOPIC, DESCRIBE_TOPIC
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState


async def permitted_topics(call: Call[DeleteTopicsRequest], handle: Handle) -> object:
    """Authorizes the client for each topic; without DESCRIBE the answer hides whether the topic exists."""
    image, request = call.host.image, call.request

    def name_of(topic: DeleteTopicState) -> str | None:
        if topic.name is not None:
            return topic.name
        known = image.topic_by_id(topic.topic_id)
        return None if known is None else known.name

    names = [*await call.turns().find(name_of, request.topics), *(request.topic_names or ())]
    describable = await call.permitted(DESCRIBE_TOPIC, names)
    deletable = await call.permitted(DELETE_TOPIC, names)
    call.sender = call.sender._replace(deletable=deletable, describable=describable)
    return await handle(call)


API = Api(
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    answered_by=CONTROLLER,
    authorize=unless(DELETE_CLUSTER, own(permitted_topics, DESCRIBE_TOPIC, DELETE_TOPIC)),
    strict_since=5,
)
