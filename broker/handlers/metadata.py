"""Metadata (3): the brokers, and topics' partitions with their leaders.

v0 asks for all topics by an empty list, later versions by null; v1 adds racks, the controller and internal topics,
v2 the
cluster id, v3 the throttle time, v4 lets a client forbid auto-creation, v5 offline replicas, v7 leader epochs, v8
authorised
operations (KIP-430), v9 is flexible, v10 topic ids (KIP-516), v12 asks by id, v13 may ask the client to bootstrap again
(KIP-1102), which this broker never does.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any

from coordinator.cluster.registry import Topic

from broker.dispatch import Api, Call
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


def metadata(call: Call[MetadataRequest]) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    """Answers from the registry; a topic that may be made by asking for it is made first."""
    request, registry = call.request, call.broker.registry
    if request.topics is None or (not request.topics and call.version < FIRST_NULL_FOR_ALL_VERSION):
        return response(call, [describe(call, topic) for topic in registry.topics.values()])
    missing = {asked.name for asked in request.topics if asked.name is not None and asked.name not in registry.topics}
    if missing and request.allow_auto_topic_creation and call.broker.config.auto_create_topics_enable:
        return create_and_answer(call, request.topics, missing)
    return response(call, answers(call, request.topics, {}))


async def create_and_answer(
    call: Call[MetadataRequest], asked: Iterable[MetadataRequestTopic], missing: set[str]
) -> MetadataResponse:
    """What could not be created is answered with its error, the rest as if it had always been there."""
    errors = await call.broker.auto_create_topics(sorted(missing))
    return response(call, answers(call, asked, errors))


def answers(
    call: Call[MetadataRequest], asked: Iterable[MetadataRequestTopic], errors: dict[str, ErrorCode]
) -> list[MetadataResponseTopic]:
    return [answer(call, each, errors) for each in asked]


def answer(
    call: Call[MetadataRequest], asked: MetadataRequestTopic, errors: dict[str, ErrorCode]
) -> MetadataResponseTopic:
    registry = call.broker.registry
    if asked.name is None:
        if call.version < FIRST_ID_ONLY_VERSION:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Metadata v{call.version} asks for topics by name")
        topic = registry.topic_by_id(asked.topic_id)
        if topic is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id, partitions=[]
            )
        return describe(call, topic)
    topic = registry.topics.get(asked.name)
    if topic is None:
        code = errors.get(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return MetadataResponseTopic(error_code=code, name=asked.name, topic_id=NO_UUID, partitions=[])
    return describe(call, topic)


def describe(call: Call[MetadataRequest], topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                error_code=0 if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=partition.index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
            )
            for partition in topic.partitions
        ],
        topic_authorized_operations=TOPIC_OPERATIONS if call.request.include_topic_authorized_operations else NOT_ASKED,
    )


NOT_ASKED = -0x80000000
TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""Read, write, create, delete, alter, describe, describe configs, alter configs (AclOperation codes): all that a
topic has."""

CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""Create, alter, describe, cluster action, describe configs, alter configs, idempotent write."""


def response(call: Call[MetadataRequest], topics: list[MetadataResponseTopic]) -> MetadataResponse:
    registry = call.broker.registry
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in call.broker.nodes(call.connection.listener.name)
        ],
        cluster_id=registry.cluster_id,
        controller_id=registry.controller_id,
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if call.request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


API = Api(MetadataRequest, MetadataResponse, metadata)
