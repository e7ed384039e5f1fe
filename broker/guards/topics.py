"""The guards of topics. Nobody is shown_name whether a topic exists of which one may not know."""

from __future__ import annotations

from typing import Final

from broker.exchange.authorisation import (
    ALTER_TOPIC,
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DELETE_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_CONFIGS_TOPIC,
    DESCRIBE_TOPIC,
)
from broker.guards.operations import NOT_REQUESTED, cluster_operations, topic_operations
from broker.handlers import metadata as metadata_handler
from broker.handlers.delete_topics import delete_permitted
from broker.requests.api import Handle
from broker.requests.call import Call, HostCall
from coordinator.cluster.topics import describe
from coordinator.cluster.topics.names import METADATA_TOPIC
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from protocol.types import NO_UUID

DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def create_topics(call: HostCall[CreateTopicsRequest], handle: Handle) -> CreateTopicsResponse:
    """Creates what the client may create, by CREATE on the cluster or on the topic, and tells configs to who may
    describe them."""
    request = call.request
    names = [topic.name for topic in request.topics]
    once = {name for name in names if names.count(name) == 1 and name != METADATA_TOPIC}
    denied: set[str] = set()
    if not call.may(CREATE_CLUSTER, quiet=True):
        denied = once - call.permitted(CREATE_TOPIC, sorted(once))
    request.topics = [topic for topic in request.topics if topic.name not in denied]
    describable = call.permitted(DESCRIBE_CONFIGS_TOPIC, once - denied, quiet=True)
    response: CreateTopicsResponse = await handle(call)
    for result in response.topics:
        if not result.error_code and result.name not in describable:
            result.topic_config_error_code, result.configs = DENIED, []
            result.num_partitions = result.replication_factor = -1
    message = "Authorization failed."
    response.topics += [
        CreatableTopicResult(name=name, error_code=DENIED, error_message=message, configs=[])
        for name in names
        if name in denied
    ]
    return response


async def delete_topics(call: HostCall[DeleteTopicsRequest], handle: Handle) -> DeleteTopicsResponse:
    """Has the controller delete what the client may delete: it knows the names behind ids."""
    if call.may(DELETE_CLUSTER, quiet=True):
        answer: DeleteTopicsResponse = await handle(call)
        return answer
    image = call.host.image
    by_id = (image.topic_by_id(topic.topic_id) for topic in call.request.topics if topic.name is None)
    names = {topic.name for topic in call.request.topics if topic.name is not None}
    names.update(call.request.topic_names or ())
    names.update(topic.name for topic in by_id if topic is not None)
    describable = call.permitted(DESCRIBE_TOPIC, names)
    deletable = call.permitted(DELETE_TOPIC, names)
    return await delete_permitted(call, deletable, describable)


async def create_partitions(call: HostCall[CreatePartitionsRequest], handle: Handle) -> CreatePartitionsResponse:
    request = call.request
    names = [topic.name for topic in request.topics]
    once = {name for name in names if names.count(name) == 1}
    denied = once - call.permitted(ALTER_TOPIC, sorted(once))
    request.topics = [topic for topic in request.topics if topic.name not in denied]
    response: CreatePartitionsResponse = await handle(call)
    response.results += [
        CreatePartitionsTopicResult(name=name, error_code=DENIED, error_message=None)
        for name in names
        if name in denied
    ]
    return response


async def describe_topic_partitions(
    call: Call[DescribeTopicPartitionsRequest], handle: Handle
) -> DescribeTopicPartitionsResponse:
    """Answers in place of the handler: what is left out does not count for the page."""
    response = describe.describe_topic_partitions(
        call.broker.image,
        call.request,
        call.context.listener,
        lambda name: call.may(DESCRIBE_TOPIC, name, quiet=not call.request.topics),
        max_partitions=call.broker.config.max_request_partition_size_limit,
    )
    for topic in response.topics:
        if topic.error_code == DENIED:
            topic.is_internal = False
        else:
            topic.topic_authorized_operations = topic_operations(call, topic.name or "")
    return response


async def metadata(call: Call[MetadataRequest], handle: Handle) -> MetadataResponse:
    """Describes the topics that the client may describe, and creates those that it may create."""
    request = call.request
    is_all = request.topics is None or (
        not request.topics and call.version < metadata_handler.FIRST_NULL_FOR_ALL_VERSION
    )
    denied: list[MetadataResponseTopic] = []
    by_id = any(map(metadata_handler.is_by_id, request.topics or ()))
    if by_id and call.version < metadata_handler.FIRST_ID_ONLY_VERSION:
        refusal: MetadataResponse = await handle(call)
        return refusal
    if not is_all:
        denied = take_denied(call)
    if denied and not request.topics:
        response = metadata_handler.response(call, [])  # no topics would be all of them in the oldest version
    else:
        response = await handle(call)
    response.topics = [topic for topic in response.topics if topic.name is None or is_told(call, topic, is_all=is_all)]
    for topic in response.topics:
        if topic.topic_authorized_operations != NOT_REQUESTED and topic.name is not None:
            topic.topic_authorized_operations = topic_operations(call, topic.name)
    response.topics += denied
    if response.cluster_authorized_operations != NOT_REQUESTED:
        response.cluster_authorized_operations = cluster_operations(call)
    return response


def is_told(call: Call[MetadataRequest], topic: MetadataResponseTopic, *, is_all: bool) -> bool:
    """True for a topic of which the client may know; those that it named are checked already."""
    return not is_all or call.may(DESCRIBE_TOPIC, topic.name or "", quiet=True)


def take_denied(call: Call[MetadataRequest]) -> list[MetadataResponseTopic]:
    """Removes the topics that the client may not describe, or not create, from the request, and returns their
    answers."""
    request, image = call.request, call.broker.image
    may_create = request.allow_auto_topic_creation and call.broker.config.auto_create_topics_enable
    denied: dict[tuple[str | None, bytes], MetadataResponseTopic] = {}
    permitted = []
    creates_all: bool | None = None
    for topic in request.topics or ():
        by_id = image.topic_by_id(topic.topic_id) if metadata_handler.is_by_id(topic) else None
        name = topic.name if not metadata_handler.is_by_id(topic) else None if by_id is None else by_id.name
        if name is None:
            permitted.append(topic)
        elif not call.may(DESCRIBE_TOPIC, name):
            shown_name = None if by_id is not None else name
            answer = metadata_handler.unknown(DENIED, shown_name, NO_UUID if by_id is None else topic.topic_id)
            answer.is_internal = False
            denied[shown_name, topic.topic_id] = answer
        elif image.topic(name) is None and may_create:
            if creates_all is None:
                creates_all = call.may(CREATE_CLUSTER, quiet=True)
            if creates_all or call.may(CREATE_TOPIC, name):
                permitted.append(topic)
            else:
                denied[name, NO_UUID] = metadata_handler.unknown(DENIED, name)
        else:
            permitted.append(topic)
    request.topics = permitted
    return list(denied.values())
