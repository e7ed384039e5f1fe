"""DescribeQuorum (55): the state of the metadata log's quorum, whose only voter is this node (KIP-595).

v1 adds fetch and caught-up times (KIP-836), v2 directory ids, the nodes and error messages (KIP-853).
"""

from __future__ import annotations

from broker.dispatch import Api, Call
from coordinator.cluster.names import METADATA_TOPIC
from protocol.errors import ErrorCode
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
)


def describe_quorum(call: Call[DescribeQuorumRequest]) -> DescribeQuorumResponse:
    cluster = call.broker.cluster
    controllers = cluster.registry.controllers.values()
    nodes = [
        Node(
            node_id=controller.controller_id,
            listeners=[Listener(name=one.name, host=one.host, port=one.port) for one in controller.endpoints],
        )
        for controller in controllers
    ]
    topics = [describe_topic(call, topic) for topic in call.request.topics]
    return DescribeQuorumResponse(error_code=0, topics=topics, nodes=nodes)


def describe_topic(call: Call[DescribeQuorumRequest], topic: TopicData) -> ResponseTopicData:
    partitions = [describe_partition(call, topic.topic_name, asked) for asked in topic.partitions]
    return ResponseTopicData(topic_name=topic.topic_name, partitions=partitions)


def describe_partition(call: Call[DescribeQuorumRequest], topic: str, asked: PartitionData) -> ResponsePartitionData:
    if (topic, asked.partition_index) != (METADATA_TOPIC, 0):
        return ResponsePartitionData(
            partition_index=asked.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, leader_id=-1,
            leader_epoch=-1, high_watermark=-1, current_voters=[], observers=[],
        )  # fmt: skip
    cluster, now_ms = call.broker.cluster, call.now_ms
    voter = ReplicaState(
        replica_id=cluster.options.node_id,
        replica_directory_id=cluster.identity.directory_ids[cluster.node.metadata_dir],
        log_end_offset=cluster.log.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return ResponsePartitionData(
        partition_index=0,
        error_code=0,
        leader_id=cluster.options.node_id,
        leader_epoch=cluster.log.epoch,
        high_watermark=cluster.log.flushed_to,
        current_voters=[voter],
        observers=[],
    )


API = Api(DescribeQuorumRequest, DescribeQuorumResponse, describe_quorum)
