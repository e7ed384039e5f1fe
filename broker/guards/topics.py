"""The guards of topics. A client is not told whether a topic exists that it may not describe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeVar

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
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from protocol.types import NO_UUID

T = TypeVar("T", CreatableTopic, CreatePartitionsTopic)

DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def create_topics(call: HostCall[CreateTopicsRequest], handle: Handle) -> CreateTopicsResponse:
    """Creates the topics that the client may create, by CREATE on the cluster or on the topic, and shows the configs
    that it may describe."""
    request = call.request
    once = named_once(topic.name for topic in request.topics)
    once.pop(METADATA_TOPIC, None)
    permitted = set(once)
    if not call.may(CREATE_CLUSTER, quiet=True):
        permitted = await call.permitted(CREATE_TOPIC, once)
    denied = [name for name in once if name not in permitted]
    request.topics = without(denied, request.topics)
    describable = await call.permitted(DESCRIBE_CONFIGS_TOPIC, permitted, quiet=True)
    response: CreateTopicsResponse = await handle(call)
    for result in response.topics:
        if not result.error_code and result.name not in describable:
            result.topic_config_error_code, result.configs = DENIED, []
            result.num_partitions = result.replication_factor = -1
    response.topics += await call.turns().map(not_created, denied)
    return response


def named_once(names: Iterable[str]) -> dict[str, None]:
    """Returns the names that are there once, in their order: the handler rejects the others."""
    return {name: None for name, count in Counter(names).items() if count == 1}


def without(denied: Iterable[str], topics: Iterable[T]) -> list[T]:
    """Returns the topics that are not denied."""
    names = set(denied)
    return [topic for topic in topics if topic.name not in names]


def not_created(name: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=DENIED, error_message="Authorization failed.", configs=[])


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
    describable = await call.permitted(DESCRIBE_TOPIC, names)
    deletable = await call.permitted(DELETE_TOPIC, names)
    return await delete_permitted(call, deletable, describable)


async def create_partitions(call: HostCall[CreatePartitionsRequest], handle: Handle) -> CreatePartitionsResponse:
    request = call.request
    once = named_once(topic.name for topic in request.topics)
    permitted = await call.permitted(ALTER_TOPIC, once)
    denied = [name for name in once if name not in permitted]
    request.topics = without(denied, request.topics)
    response: CreatePartitionsResponse = await handle(call)
    response.results += await call.turns().map(not_extended, denied)
    return response


def not_extended(name: str) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=DENIED, error_message=None)


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
        denied = await take_denied(call)
    if denied and not request.topics:
        response = metadata_handler.response(call, [])  # no topics would be all of them in the oldest version
    else:
        response = await handle(call)
    if is_all:
        names = await call.permitted(DESCRIBE_TOPIC, (topic.name or "" for topic in response.topics), quiet=True)
        response.topics = [topic for topic in response.topics if topic.name in names]
    turns = call.turns()
    for topic in response.topics:
        if topic.topic_authorized_operations != NOT_REQUESTED and topic.name is not None:
            await turns.next()
            topic.topic_authorized_operations = topic_operations(call, topic.name)
    response.topics += denied
    if response.cluster_authorized_operations != NOT_REQUESTED:
        response.cluster_authorized_operations = cluster_operations(call)
    return response


async def take_denied(call: Call[MetadataRequest]) -> list[MetadataResponseTopic]:
    """Removes the topics that the client may not describe, or not create, from the request, and returns their
    answers."""
    request, image = call.request, call.broker.image
    may_create = request.allow_auto_topic_creation and call.broker.config.auto_create_topics_enable
    denied: dict[tuple[str | None, bytes], MetadataResponseTopic] = {}
    permitted = []
    creates_all: bool | None = None
    turns = call.turns()
    for topic in request.topics or ():
        await turns.next()
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
