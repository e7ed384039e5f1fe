"""DescribeQuorum (55): describes the quorum of the metadata log, whose only voter is this node (KIP-595).

v1 adds fetch and caught-up times (KIP-836), v2 directory ids, the nodes and error messages (KIP-853).
"""

from __future__ import annotations

from broker.exchange.authorisation import DESCRIBE_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import Call
from coordinator.cluster.topics.names import METADATA_TOPIC
from protocol.errors import ErrorCode
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
)

QUORUMS = [(METADATA_TOPIC, [0])]
NO_MESSAGE = ""
NOT_HERE = "This server does not host this topic-partition."


async def describe_quorum(call: Call[DescribeQuorumRequest]) -> DescribeQuorumResponse:
    """Describes the one quorum; a request that names anything else, or nothing, gets errors for all that it names."""
    requested = call.request.topics
    if [
        (topic.topic_name, [partition.partition_index for partition in topic.partitions]) for topic in requested
    ] != QUORUMS:
        topics = [unknown_topic(topic) for topic in requested]
        return DescribeQuorumResponse(error_code=0, error_message=NO_MESSAGE, topics=topics)
    nodes = [
        Node(
            node_id=controller.controller_id,
            listeners=[Listener(name=one.name, host=one.host, port=one.port) for one in controller.endpoints],
        )
        for controller in call.broker.image.controllers.values()
    ]
    topics = [ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[describe(call)])]
    return DescribeQuorumResponse(error_code=0, error_message=NO_MESSAGE, topics=topics, nodes=nodes)


def unknown_topic(topic: TopicData) -> ResponseTopicData:
    partitions = [
        ResponsePartitionData(
            partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=NOT_HERE, leader_id=0, leader_epoch=0, high_watermark=0, current_voters=[], observers=[],
        )
        for partition in topic.partitions
    ]  # fmt: skip
    return ResponseTopicData(topic_name=topic.topic_name, partitions=partitions)


def describe(call: Call[DescribeQuorumRequest]) -> ResponsePartitionData:
    node, log, now_ms = call.broker.node, call.broker.metadata_log, call.now_ms
    voter = ReplicaState(
        replica_id=node.node_id,
        replica_directory_id=node.identity.directory_ids[node.metadata_dir],
        log_end_offset=log.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return ResponsePartitionData(
        partition_index=0,
        error_code=0,
        error_message=NO_MESSAGE,
        leader_id=node.node_id,
        leader_epoch=log.epoch,
        high_watermark=log.high_watermark,
        current_voters=[voter],
        observers=[],
    )


API = Api(DescribeQuorumRequest, DescribeQuorumResponse, describe_quorum, of_cluster(DESCRIBE_CLUSTER))
