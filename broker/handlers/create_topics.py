"""CreateTopics (19): creates topics, by partition count or by assignment, with configs.

v1 adds messages to errors and validate-only, v2 the throttle time, v4 leaves counts to the broker's defaults (KIP-464),
v5 is flexible and reports what was created (KIP-525), v6 may be rejected because of a quota (KIP-599), v7 returns the
topic id (KIP-516).
"""

from __future__ import annotations

from typing import Final

from broker.dispatch.api import CONTROLLER, Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.rules import add_rejections, named_once, own, split
from broker.request.authorisation import CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_CONFIGS_TOPIC
from coordinator.cluster.topics.names import METADATA_TOPIC
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

DENIED: Final = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


async def create_topics(call: Call[CreateTopicsRequest]) -> CreateTopicsResponse:
    return await call.host.topics.create(call.request, call.sender)


async def permitted_topics(call: Call[CreateTopicsRequest], handle: Handle) -> CreateTopicsResponse:
    """Authorizes the client for each topic, unless CREATE on CLUSTER is allowed; the response has the configs that the
    client may describe."""
    request = call.request
    denied: list[CreatableTopic] = []
    if not call.may(CREATE_CLUSTER, quiet=True):
        once = named_once(topic.name for topic in request.topics) - {METADATA_TOPIC}
        request.topics, denied = await split(
            call, CREATE_TOPIC, request.topics, lambda topic: topic.name if topic.name in once else None
        )
    names = [topic.name for topic in request.topics]
    describable = await call.permitted(DESCRIBE_CONFIGS_TOPIC, names, quiet=True)
    response: CreateTopicsResponse = await handle(call)
    for result in response.topics:
        if not result.error_code and result.name not in describable:
            result.topic_config_error_code, result.configs = DENIED.code, []
            result.num_partitions = result.replication_factor = -1
    await add_rejections(call, response, "topics", denied, DENIED)
    return response


API = Api(
    CreateTopicsRequest,
    CreateTopicsResponse,
    create_topics,
    answered_by=CONTROLLER,
    authorize=own(permitted_topics, CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_CONFIGS_TOPIC),
    strict_since=6,
)
