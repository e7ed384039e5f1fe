"""Metadata (3): the brokers, and topics' partitions with their leaders.

v0 asks for all topics by an empty list, later versions by null; v1 adds racks, the controller and internal topics,
v2 the cluster id, v3 the throttle time, v4 lets a client forbid auto-creation, v5 offline replicas, v7 leader epochs,
v8 authorised operations (KIP-430), v9 is flexible, v10 topic ids (KIP-516), v12 asks by id, v13 may ask the client to
bootstrap again (KIP-1102), which this broker never does.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from broker.dispatch import Api, Call
from broker.operations import cluster_operations, topic_operations
from coordinator.cluster import names
from coordinator.cluster.topic import Topic
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.types import NO_UUID

FIRST_NULL_FOR_ALL_VERSION = 1
FIRST_ID_ONLY_VERSION = 12
NOT_CREATED: Mapping[str, ErrorCode] = {}


def metadata(call: Call[MetadataRequest]) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    """Answers from the registry; a topic that may be made by asking for it is made first."""
    request, registry = call.request, call.broker.registry
    if request.topics is None or (not request.topics and call.version < FIRST_NULL_FOR_ALL_VERSION):
        return response(call, [describe(call, topic) for topic in registry.topics()])
    missing = {
        asked.name
        for asked in request.topics
        if asked.name and asked.topic_id == NO_UUID and registry.topic(asked.name) is None
    }
    if missing and request.allow_auto_topic_creation and call.broker.config.auto_create_topics_enable:
        return create_and_answer(call, request.topics, missing)
    return response(call, [answer(call, asked, NOT_CREATED) for asked in request.topics])


async def create_and_answer(
    call: Call[MetadataRequest], asked: Iterable[MetadataRequestTopic], missing: set[str]
) -> MetadataResponse:
    """What could not be created is answered with its error, the rest as if it had always been there."""
    errors = await call.broker.auto_create_topics(sorted(missing))
    return response(call, [answer(call, each, errors) for each in asked])


def answer(
    call: Call[MetadataRequest], asked: MetadataRequestTopic, errors: Mapping[str, ErrorCode]
) -> MetadataResponseTopic:
    """Who gives an id asks by that, whether the name is null or, as the Java client has it, empty."""
    registry = call.broker.registry
    if asked.name is None or asked.topic_id != NO_UUID:
        if call.version < FIRST_ID_ONLY_VERSION:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Metadata v{call.version} asks for topics by name")
        topic = registry.topic_by_id(asked.topic_id)
        return unknown(asked, ErrorCode.UNKNOWN_TOPIC_ID) if topic is None else describe(call, topic)
    topic = registry.topic(asked.name)
    if topic is None:
        return unknown(asked, errors.get(asked.name, unknown_code(asked.name)))
    return describe(call, topic)


def unknown_code(name: str) -> ErrorCode:
    """A name that no topic can have is told apart from one that no topic has yet."""
    try:
        names.validate(name)
    except KafkaError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def unknown(asked: MetadataRequestTopic, code: ErrorCode) -> MetadataResponseTopic:
    name = asked.name if asked.topic_id == NO_UUID else None
    return MetadataResponseTopic(error_code=code, name=name, topic_id=asked.topic_id, partitions=[])


def describe(call: Call[MetadataRequest], topic: Topic) -> MetadataResponseTopic:
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
            )
            for index, partition in topic.partitions.items()
        ],
        topic_authorized_operations=topic_operations(call.request.include_topic_authorized_operations),
    )


def response(call: Call[MetadataRequest], topics: list[MetadataResponseTopic]) -> MetadataResponse:
    registry, listener = call.broker.registry, call.connection.listener.name
    brokers = [
        MetadataResponseBroker(node_id=node.broker_id, host=endpoint.host, port=endpoint.port, rack=node.rack)
        for node in registry.brokers.values()
        if (endpoint := node.endpoint(listener)) is not None and not node.fenced
    ]
    return MetadataResponse(
        brokers=brokers,
        cluster_id=registry.cluster_id,
        controller_id=registry.controller_id,
        topics=topics,
        cluster_authorized_operations=cluster_operations(call.request.include_cluster_authorized_operations),
    )


API = Api(MetadataRequest, MetadataResponse, metadata)
