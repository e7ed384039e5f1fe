"""DescribeTopicPartitions (75): topics' partitions page by page, with eligible leader replicas (KIP-966)."""

from __future__ import annotations

from collections.abc import Sequence

from broker.dispatch import Api, Call
from broker.handlers.metadata import unknown_code
from broker.operations import TOPIC_OPERATIONS
from coordinator.cluster import names
from coordinator.cluster.topic import Partition, Topic
from protocol.errors import ErrorCode
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from protocol.types import NO_UUID


def describe_topic_partitions(call: Call[DescribeTopicPartitionsRequest]) -> DescribeTopicPartitionsResponse:
    """Topics in the order of their names from the cursor on, until as many partitions as the page may have."""
    request, registry = call.request, call.broker.registry
    cursor = request.cursor
    if cursor is not None and cursor.partition_index < 0:
        refused = [unknown(topic.name, ErrorCode.INVALID_REQUEST) for topic in request.topics]
        return DescribeTopicPartitionsResponse(topics=refused)
    asked = {topic.name for topic in request.topics} or registry.topic_names()
    left = page_size(call)
    response = DescribeTopicPartitionsResponse(topics=[])
    for name in sorted(asked):
        if cursor is not None and name < cursor.topic_name:
            continue
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        topic = registry.topic(name)
        if topic is None:
            response.topics.append(unknown(name, unknown_code(name)))
            continue
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            break
        indexes = [index for index in sorted(topic.partitions) if index >= first]
        response.topics.append(describe(topic, indexes[:left]))
        if len(indexes) > left:
            response.next_cursor = Cursor(topic_name=name, partition_index=indexes[left])
            break
        left -= len(indexes)
    return response


def page_size(call: Call[DescribeTopicPartitionsRequest]) -> int:
    """What the client asks for, within max.request.partition.size.limit; Kafka refuses a page of nothing."""
    limit = call.broker.config.max_request_partition_size_limit
    if call.request.response_partition_limit < 1:
        return 1
    return min(call.request.response_partition_limit, limit)


def unknown(name: str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name, topic_id=NO_UUID, partitions=[])


def describe(topic: Topic, indexes: Sequence[int]) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=names.is_internal(topic.name),
        partitions=[describe_partition(index, topic.partitions[index]) for index in indexes],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def describe_partition(index: int, partition: Partition) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=0 if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=[],
    )


API = Api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, describe_topic_partitions)
