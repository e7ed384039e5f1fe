"""DescribeQuorum (55): describes the quorum of the metadata log: its voters and observers (KIP-595).

v1 adds fetch and caught-up times (KIP-836), v2 directory ids, the nodes and error messages (KIP-853).
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import DESCRIBE_CLUSTER
from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.quorum.replicas import ReplicaProgress
from protocol.errors import ErrorCode, KafkaError
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
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partitions = [rejected_partition(partition.partition_index, code, NOT_HERE) for partition in topic.partitions]
    return ResponseTopicData(topic_name=topic.topic_name, partitions=partitions)


def rejected_partition(index: int, code: ErrorCode, message: str) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=index, error_code=code, error_message=message, leader_id=0, leader_epoch=0, high_watermark=0,
        current_voters=[], observers=[],
    )  # fmt: skip


def describe(call: Call[DescribeQuorumRequest]) -> ResponsePartitionData:
    try:
        quorum = call.host.quorum.describe()
    except KafkaError as error:
        return rejected_partition(0, error.code, error.message)
    has_directories = bool(call.host.image.kraft_version)  # voters of the configuration have no directory (KIP-853)
    return ResponsePartitionData(
        partition_index=0,
        error_code=0,
        error_message=NO_MESSAGE,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[replica_state(voter, has_directory=has_directories) for voter in quorum.voters],
        observers=[replica_state(observer) for observer in quorum.observers],
    )


def replica_state(progress: ReplicaProgress, *, has_directory: bool = True) -> ReplicaState:
    return ReplicaState(
        replica_id=progress.key.node_id,
        replica_directory_id=progress.key.directory_id if has_directory else NO_UUID,
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
