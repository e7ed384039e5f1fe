"""DescribeQuorum (55): describes the quorum of the metadata log: this node, its only voter, and observers (KIP-595).

v1 adds fetch and caught-up times (KIP-836), v2 directory ids, the nodes and error messages (KIP-853).
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import DESCRIBE_CLUSTER
from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.quorum.replicas import ReplicaProgress
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
from protocol.types import NO_UUID

QUORUMS = [(METADATA_TOPIC, [0])]
NO_MESSAGE = ""
NOT_HERE = "This server does not host this topic-partition."


async def describe_quorum(call: Call[DescribeQuorumRequest]) -> DescribeQuorumResponse:
    """Describes the metadata quorum. If a request names any other partition, or none, all its partitions get errors."""
    requested = call.request.topics
    if [
        (topic.topic_name, [partition.partition_index for partition in topic.partitions]) for topic in requested
    ] != QUORUMS:
        topics = [unknown_topic(topic) for topic in requested]
        return DescribeQuorumResponse(error_code=0, error_message=NO_MESSAGE, topics=topics)
    nodes = [
        Node(
            node_id=controller.controller_id,
            listeners=[
                Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)
                for endpoint in controller.endpoints
            ],
        )
        for controller in call.host.image.controllers.values()
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
    leader, now_ms = call.host.quorum.leader, call.now_ms
    key = leader.voter.key
    if not call.host.image.kraft_version:  # voters of the configuration have no directory (KIP-853)
        key = key._replace(directory_id=NO_UUID)
    own = ReplicaProgress(key, leader.metadata_log.end_offset, fetched_ms=now_ms, caught_up_ms=now_ms)
    return ResponsePartitionData(
        partition_index=0,
        error_code=0,
        error_message=NO_MESSAGE,
        leader_id=leader.voter.node_id,
        leader_epoch=leader.metadata_log.epoch,
        high_watermark=leader.metadata_log.high_watermark,
        current_voters=[replica_state(own)],
        observers=[replica_state(observer) for observer in leader.observers.active(now_ms)],
    )


def replica_state(progress: ReplicaProgress) -> ReplicaState:
    return ReplicaState(
        replica_id=progress.key.node_id,
        replica_directory_id=progress.key.directory_id,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=progress.fetched_ms,
        last_caught_up_timestamp=progress.caught_up_ms,
    )


API = Api(
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    describe_quorum,
    answered_by=CONTROLLER,
    authorize=whole(DESCRIBE_CLUSTER),
    entries=(Entries("topics", "topics", Entries("partitions", "partitions")),),
)
