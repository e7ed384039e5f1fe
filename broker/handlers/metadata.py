"""Metadata (3): describes the brokers, and topics' partitions with their leaders.

v0 requests all topics by an empty list, later versions by null; v1 adds racks, the controller and internal topics,
v2 the cluster id, v3 the throttle time, v4 lets a client forbid auto-creation, v5 offline replicas, v7 leader epochs,
v8 authorised operations (KIP-430), v9 is flexible, v10 topic ids (KIP-516), v12 takes topic ids, v13 may have the
client rebootstrap (KIP-1102), which this broker never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from broker.dispatch.api import Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.operations import cluster_operations, topic_operations
from broker.dispatch.rules import own
from broker.request.authorisation import CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC
from broker.request.turns import batches
from coordinator.cluster.topics import names
from coordinator.cluster.topics.describe import offline_replicas
from coordinator.cluster.topics.topic import Topic
from protocol.errors import ErrorCode
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.schema import nullable_since
from protocol.types import NO_UUID, Uuid

FIRST_NULL_FOR_ALL_VERSION = nullable_since(MetadataRequest, "topics")
FIRST_ID_ONLY_VERSION = 12
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NOT_CREATED: Mapping[str, ErrorCode] = {}
TOLD: Mapping[ErrorCode, ErrorCode] = {ErrorCode.THROTTLING_QUOTA_EXCEEDED: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
"""The retriable error that replaces an error which clients don't expect in an answer to Metadata."""


async def metadata(call: Call[MetadataRequest]) -> MetadataResponse:
    """Answers from the image, after creating missing topics if auto-creation applies. Each topic is described once. If
    any topic is requested by id, names are ignored."""
    request, image, turns = call.request, call.broker.image, call.turns()
    requested = requested_topics(call)
    if requested is None:
        described = list(image.topics())
        visible = await call.permitted(DESCRIBE_TOPIC, (topic.name for topic in described), quiet=True)
        described = [topic for topic in described if topic.name in visible]
        return response(call, await turns.map(partial(describe, call), described))
    if call.version < FIRST_ID_ONLY_VERSION and any(map(is_by_id, requested)):
        return ids_unsupported(requested)
    topic_ids: dict[Uuid, None] = {}
    names: dict[str, None] = {}
    for some in batches(requested):
        await turns.next()
        topic_ids.update((topic.topic_id, None) for topic in some if is_by_id(topic))
        names.update((topic.name, None) for topic in some if topic.name is not None)
    if len(topic_ids) > 1:
        topic_ids.pop(NO_UUID, None)  # beside ids, names are ignored
    if topic_ids:
        return response(call, await turns.map(partial(by_id, call), list(topic_ids)))
    known = await turns.map(image.topic, list(names))
    missing = [name for name, topic in zip(names, known, strict=True) if topic is None]
    if missing and request.allow_auto_topic_creation and call.broker.config.auto_create_topics_enable:
        return await create_and_answer(call, names, missing)
    return response(call, await turns.map(lambda name: by_name(call, name, NOT_CREATED), list(names)))


async def create_and_answer(
    call: Call[MetadataRequest], names: Iterable[str], missing: Sequence[str]
) -> MetadataResponse:
    """Creates the missing topics within the client's quota, and describes all topics; a topic that could not be created
    has its error."""
    turns = call.turns()
    errors = await call.broker.auto_create_topics(missing, call.context, turns)
    return response(call, await turns.map(lambda name: by_name(call, name, errors), list(names)))


def requested_topics(call: Call[MetadataRequest]) -> list[MetadataRequestTopic] | None:
    """Returns the topics that the request names; None if it requests all."""
    topics = call.request.topics
    return None if not topics and call.version < FIRST_NULL_FOR_ALL_VERSION else topics


def is_by_id(topic: MetadataRequestTopic) -> bool:
    return topic.name is None or topic.topic_id != NO_UUID


def by_id(call: Call[MetadataRequest], topic_id: Uuid) -> MetadataResponseTopic:
    topic = call.topic_by_id(topic_id)
    if topic is None:
        return unknown(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
    return describe(call, topic)


def by_name(call: Call[MetadataRequest], name: str, errors: Mapping[str, ErrorCode]) -> MetadataResponseTopic:
    topic = call.broker.image.topic(name)
    if topic is not None:
        return describe(call, topic)
    code = errors[name] if name in errors else names.absence(name)
    missing = unknown(TOLD.get(code, code), name)
    missing.topic_authorized_operations = topic_operations(call, name, call.request.include_topic_authorized_operations)
    return missing


def ids_unsupported(topics: Iterable[MetadataRequestTopic]) -> MetadataResponse:
    """Rejects topic ids in a request before version 12, which does not support them."""
    rejections = [unknown(ErrorCode.INVALID_REQUEST, topic.name or "", topic.topic_id) for topic in topics]
    for rejection in rejections:
        rejection.is_internal = False  # the names were ignored
    return MetadataResponse(brokers=[], topics=rejections)


def unknown(code: ErrorCode, name: str | None, topic_id: Uuid = NO_UUID) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and names.is_internal(name),
        partitions=[],
    )


def describe(call: Call[MetadataRequest], topic: Topic) -> MetadataResponseTopic:
    image, listener = call.broker.image, call.context.listener
    call.announce(len(topic.partitions))
    return MetadataResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=names.is_internal(topic.name),
        partitions=[
            MetadataResponsePartition(
                error_code=0 if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                offline_replicas=offline_replicas(image, partition, listener),
            )
            for index, partition in topic.partitions.items()
        ],
        topic_authorized_operations=topic_operations(
            call, topic.name, call.request.include_topic_authorized_operations
        ),
    )


def response(call: Call[MetadataRequest], topics: list[MetadataResponseTopic]) -> MetadataResponse:
    image, listener = call.broker.image, call.context.listener
    brokers = [
        MetadataResponseBroker(node_id=node.broker_id, host=endpoint.host, port=endpoint.port, rack=node.rack)
        for node in image.brokers.values()
        if (endpoint := node.endpoint(listener)) is not None and not node.fenced
    ]
    return MetadataResponse(
        brokers=brokers,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=cluster_operations(call, call.request.include_cluster_authorized_operations),
    )


# Authorization


async def permitted_topics(call: Call[MetadataRequest], handle: Handle) -> MetadataResponse:
    """Authorizes the client for each topic: DESCRIBE to see it, and CREATE on TOPIC or CLUSTER to create it; without a
    list of topics, denied topics are left out."""
    requested = requested_topics(call)
    denied: list[MetadataResponseTopic] = []
    if requested is not None and (call.version >= FIRST_ID_ONLY_VERSION or not any(map(is_by_id, requested))):
        by_ids = [topic for topic in requested if topic.topic_id != NO_UUID]
        requested = by_ids or requested  # beside ids, names are not looked at
        call.request.topics, denied = await split_denied(call, requested)
        if denied and not call.request.topics:
            return response(call, denied)  # in the oldest version an empty list requests all topics
    answer: MetadataResponse = await handle(call)
    answer.topics += denied
    return answer


async def split_denied(
    call: Call[MetadataRequest], requested: Iterable[MetadataRequestTopic]
) -> tuple[list[MetadataRequestTopic], list[MetadataResponseTopic]]:
    """Returns the topics that the client may describe, or create, and the answers to the others."""
    request, image = call.request, call.broker.image
    may_create = request.allow_auto_topic_creation and call.broker.config.auto_create_topics_enable
    denied: dict[tuple[str | None, bytes], MetadataResponseTopic] = {}
    permitted = []
    creates_all: bool | None = None
    turns = call.turns()
    for topic in requested:
        await turns.next()
        topic_image = call.topic_by_id(topic.topic_id) if is_by_id(topic) else None
        name = topic.name if not is_by_id(topic) else None if topic_image is None else topic_image.name
        if name is None:
            permitted.append(topic)
        elif not call.may(DESCRIBE_TOPIC, name):
            shown_name = None if topic_image is not None else name
            answer = unknown(DENIED, shown_name, NO_UUID if topic_image is None else topic.topic_id)
            answer.is_internal = False
            denied[shown_name, topic.topic_id] = answer
        elif image.topic(name) is None and may_create:
            if creates_all is None:
                creates_all = call.may(CREATE_CLUSTER, quiet=True)
            if creates_all or call.may(CREATE_TOPIC, name):
                permitted.append(topic)
            else:
                denied[name, NO_UUID] = unknown(DENIED, name)
        else:
            permitted.append(topic)
    return permitted, list(denied.values())


API = Api(
    MetadataRequest,
    MetadataResponse,
    metadata,
    authorize=own(permitted_topics, DESCRIBE_TOPIC, CREATE_CLUSTER, CREATE_TOPIC),
)
