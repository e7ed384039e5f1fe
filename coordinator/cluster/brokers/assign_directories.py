"""Decides on AssignReplicasToDirs: records the log directories of a broker's replicas (KIP-858).

Source: Kafka's ReplicationControlManager.handleAssignReplicasToDirs.
"""

from __future__ import annotations

from coordinator.cluster.brokers.heartbeat import check_broker_epoch
from coordinator.cluster.brokers.info import BrokerRegistration
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.partitions.change import DIRECTORIES_SINCE, Election, PartitionTarget
from coordinator.cluster.partitions.changes import Departure, PartitionChanges, Place
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
)


def assign_replicas_to_dirs(
    image: Image,
    request: AssignReplicasToDirsRequest,
    ticket: Ticket[AssignReplicasToDirsResponse],
    configs: ConfigRules,
) -> ClusterResult:
    """Returns the decision, with a result for each replica. Raises KafkaError(STALE_BROKER_EPOCH,
    UNSUPPORTED_VERSION).
    """
    if image.metadata_version < DIRECTORIES_SINCE:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    assigning = _Assigning(image, broker, configs)
    directories = [assigning.assign(directory) for directory in request.directories]
    changes = PartitionChanges(image, configs)
    departed = changes.updates(assigning.offline, Departure(removed=broker.broker_id))
    response = AssignReplicasToDirsResponse(error_code=ErrorCode.NONE, directories=directories)
    return answered(ticket, response, [*assigning.records, *departed])


class _Assigning:
    """The records of one request."""

    def __init__(self, image: Image, broker: BrokerRegistration, configs: ConfigRules) -> None:
        self._image = image
        self._broker = broker
        self._changes = PartitionChanges(image, configs)
        self.records: list[MetadataRecord] = []
        self.offline: list[Place] = []
        """Replicas in directories that are not online, which the broker can no longer lead."""

    def assign(self, directory: DirectoryData) -> ResponseDirectoryData:
        is_online = self._broker.has_online(directory.id)
        topics = [self._topic(directory, topic, is_online=is_online) for topic in directory.topics]
        return ResponseDirectoryData(id=directory.id, topics=topics)

    def _topic(self, directory: DirectoryData, named: TopicData, *, is_online: bool) -> ResponseTopicData:
        partitions = [
            ResponsePartitionData(
                partition_index=partition.partition_index,
                error_code=self._partition(directory, named, partition.partition_index, is_online=is_online),
            )
            for partition in named.partitions
        ]
        return ResponseTopicData(topic_id=named.topic_id, partitions=partitions)

    def _partition(self, directory: DirectoryData, named: TopicData, index: int, *, is_online: bool) -> ErrorCode:
        topic, broker_id = self._image.topic_by_id(named.topic_id), self._broker.broker_id
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if index not in topic.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if broker_id not in topic.partitions[index].replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        target = PartitionTarget(directories={broker_id: directory.id})
        record = self._changes.change(topic, index, target, Election.ONLINE)
        if record is not None:
            self.records.append(record)
        if not is_online:
            self.offline.append((topic, index))
        return ErrorCode.NONE
