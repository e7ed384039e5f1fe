"""Decides on AlterPartitionReassignments and answers ListPartitionReassignments (KIP-455).

A reassignment whose replicas are all in sync is complete at once. On a single node this is true of every valid
reassignment.

Source: Kafka's ReplicationControlManager and PartitionReassignmentReplicas.
"""

from __future__ import annotations

from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.partitions.change import Election, PartitionTarget
from coordinator.cluster.partitions.changes import PartitionChanges
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.cluster.rejections import error_message, out_of_time
from coordinator.cluster.topics.placement import check_assignment
from coordinator.cluster.topics.topic import PartitionRegistration, Topic
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from protocol.metadata_records.topics import PartitionChangeRecord


def alter_partition_reassignments(
    image: Image,
    request: AlterPartitionReassignmentsRequest,
    ticket: Ticket[AlterPartitionReassignmentsResponse],
    configs: ConfigRules,
) -> ClusterResult:
    """Returns the decision, with a result for each partition: a new assignment, or the cancellation of a
    reassignment.
    """
    if not request.topics:  # Kafka answers with the schema's defaults, not with the request's values
        return answered(
            ticket, AlterPartitionReassignmentsResponse(error_code=ErrorCode.NONE, error_message="", responses=[])
        )
    if late := out_of_time(request.timeout_ms):
        return answered(ticket, _all_refused(request, late))
    reassignment = _Reassignment(image, configs, request.allow_replication_factor_change)
    responses = [
        ReassignableTopicResponse(
            name=topic.name, partitions=[reassignment.alter(topic.name, partition) for partition in topic.partitions]
        )
        for topic in request.topics
    ]
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=responses,
    )
    return answered(ticket, response, reassignment.records)


def _all_refused(request: AlterPartitionReassignmentsRequest, error: KafkaError) -> AlterPartitionReassignmentsResponse:
    responses = [
        ReassignableTopicResponse(
            name=topic.name, partitions=[_result(partition.partition_index, error) for partition in topic.partitions]
        )
        for topic in request.topics
    ]
    return AlterPartitionReassignmentsResponse(
        error_code=error.code, error_message=error_message(error), responses=responses
    )


def _result(index: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(partition_index=index, error_code=ErrorCode.NONE, error_message=None)
    return ReassignablePartitionResponse(
        partition_index=index, error_code=error.code, error_message=error_message(error)
    )


class _Reassignment:
    """The records of one request."""

    def __init__(self, image: Image, configs: ConfigRules, may_change_factor: bool) -> None:
        self._image = image
        self._may_change_factor = may_change_factor
        self._changes = PartitionChanges(image, configs)
        self.records: list[MetadataRecord] = []

    def alter(self, topic_name: str, target: ReassignablePartition) -> ReassignablePartitionResponse:
        index = target.partition_index
        try:
            self._alter(topic_name, index, target.replicas)
        except KafkaError as error:
            return _result(index, error)
        return _result(index, None)

    def _alter(self, topic_name: str, index: int, replicas: list[int] | None) -> None:
        topic = self._image.topic(topic_name)
        if topic is None:
            message = f"Unable to find a topic named {topic_name}."
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        partition = topic.partitions.get(index)
        if partition is None:
            message = f"Unable to find partition {topic_name}:{index}."
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        if replicas is None:
            self._cancel(topic, index, partition)
        else:
            self._change(topic, index, partition, replicas)

    def _cancel(self, topic: Topic, index: int, partition: PartitionRegistration) -> None:
        if not partition.reassigning:
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        original = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
        isr = [replica for replica in partition.isr if replica in original]
        if not isr and not self._changes.unclean_enabled(topic):
            message = (
                f"Unable to revert partition assignment for {topic.name}:{index} because it would require an unclean "
                "leader election."
            )
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        if not original:
            message = f"Unable to revert partition assignment for {topic.name}:{index} because no replica would remain."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        if not isr:  # as PartitionReassignmentRevert: else a former replica would be the last known leader
            isr = original[:1]
        target = PartitionTarget(isr=isr, replicas=original, adding_replicas=[], removing_replicas=[])
        self._append(self._changes.change(topic, index, target))

    def _change(self, topic: Topic, index: int, partition: PartitionRegistration, target: list[int]) -> None:
        check_assignment(self._image, target, None)
        if not self._may_change_factor:
            before = len({*partition.replicas, *partition.adding_replicas}.difference(partition.removing_replicas))
            if before != len(target):
                message = f"The replication factor is changed from {before} to {len(target)}"
                raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
        adding = sorted(set(target) - set(partition.replicas))
        removing = sorted(set(partition.replicas) - set(target))
        becoming = PartitionTarget(
            replicas=[*target, *removing], adding_replicas=adding or None, removing_replicas=removing or None
        )
        self._append(self._changes.change(topic, index, becoming, Election.ONLINE))

    def _append(self, record: PartitionChangeRecord | None) -> None:
        if record is not None:
            self.records.append(record)


def list_partition_reassignments(
    image: Image, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Returns the reassignments of the named partitions, or of all; topics without any are left out."""
    topics = []
    if request.topics is None:
        requested = [(topic, list(topic.partitions)) for topic in image.topics()]
    else:
        named = ((image.topic(topic.name), topic.partition_indexes) for topic in request.topics)
        requested = [(topic, indexes) for topic, indexes in named if topic is not None]
    for topic, indexes in requested:
        ongoing = [_ongoing(index, topic.partitions[index]) for index in indexes if _is_reassigning(topic, index)]
        if ongoing:
            topics.append(OngoingTopicReassignment(name=topic.name, partitions=ongoing))
    return ListPartitionReassignmentsResponse(error_code=ErrorCode.NONE, error_message=None, topics=topics)


def _is_reassigning(topic: Topic, index: int) -> bool:
    return index in topic.partitions and topic.partitions[index].reassigning


def _ongoing(index: int, partition: PartitionRegistration) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=index,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
    )
