"""Decides on AlterPartition: accepts or rejects the in-sync replicas that a leader proposes (KIP-497, KIP-704, KIP-841,
KIP-903).

Source: Kafka's ReplicationControlManager.alterPartition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coordinator.cluster.brokers.heartbeat import check_broker_epoch
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.partitions.change import PartitionTarget
from coordinator.cluster.partitions.changes import PartitionChanges
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.cluster.topics.topic import (
    LEADER_UNCHANGED,
    RECOVERED,
    RECOVERING,
    PartitionRegistration,
    Topic,
    changed,
)
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
)

ANY_EPOCH = -1
"""The epoch of a replica's broker if the request doesn't have it; it is not checked."""


def alter_partition(
    image: Image, request: AlterPartitionRequest, ticket: Ticket[AlterPartitionResponse], configs: ConfigRules
) -> ClusterResult:
    """Returns the decision, with each partition's state after the change, or the error. Raises
    KafkaError(STALE_BROKER_EPOCH).
    """
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    altering = _Altering(image, configs, request.broker_id)
    topics = [altering.topic(topic) for topic in request.topics]
    return answered(ticket, AlterPartitionResponse(error_code=ErrorCode.NONE, topics=topics), altering.records)


class _Altering:
    """The records of one request."""

    def __init__(self, image: Image, configs: ConfigRules, leader_id: int) -> None:
        self._image = image
        self._leader_id = leader_id
        self._changes = PartitionChanges(image, configs)
        self._altered: set[tuple[str, int]] = set()
        self.records: list[MetadataRecord] = []

    def topic(self, named: TopicData) -> ResponseTopicData:
        topic = self._image.topic_by_id(named.topic_id)
        if topic is None:
            partitions = [_refused(partition, ErrorCode.UNKNOWN_TOPIC_ID) for partition in named.partitions]
        else:
            partitions = [self._partition(topic, partition) for partition in named.partitions]
        return ResponseTopicData(topic_id=named.topic_id, partitions=partitions)

    def _partition(self, topic: Topic, proposed: PartitionData) -> ResponsePartitionData:
        index = proposed.partition_index
        partition = topic.partitions.get(index)
        if partition is None:
            return _refused(proposed, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        code = next(_problems(self._image, self._leader_id, partition, proposed), ErrorCode.NONE)
        if code or (topic.name, index) in self._altered:  # a second change of the partition can't be based on the first
            return _refused(proposed, code or ErrorCode.INVALID_UPDATE_VERSION)
        isr = [replica.broker_id for replica in _proposed_isr(proposed)]
        target = PartitionTarget(isr=isr, leader_recovery_state=proposed.leader_recovery_state)
        record = self._changes.change(topic, index, target)
        if record is not None:
            self._altered.add((topic.name, index))
            self.records.append(record)
            if record.leader not in (LEADER_UNCHANGED, self._leader_id):  # the change has completed a reassignment
                return _refused(proposed, ErrorCode.NEW_LEADER_ELECTED)
            partition = changed(partition, record)
        return _state(index, partition)


def _proposed_isr(proposed: PartitionData) -> Sequence[BrokerState]:
    """Returns the proposed replicas, with -1 for the brokers' epochs if the request is older than version 3."""
    return proposed.new_isr_with_epochs or [BrokerState(broker_id=broker_id) for broker_id in proposed.new_isr]


def _problems(
    image: Image, leader_id: int, partition: PartitionRegistration, proposed: PartitionData
) -> Iterator[ErrorCode]:
    """Yields the errors of a proposed ISR, the most important first."""
    leader_epoch, partition_epoch = proposed.leader_epoch, proposed.partition_epoch
    if leader_epoch > partition.leader_epoch or partition_epoch > partition.partition_epoch:
        yield ErrorCode.NOT_CONTROLLER  # the leader got this epoch from a later controller
    if leader_epoch < partition.leader_epoch:
        yield ErrorCode.FENCED_LEADER_EPOCH
    if leader_id != partition.leader:
        yield ErrorCode.INVALID_REQUEST
    if partition_epoch < partition.partition_epoch:
        yield ErrorCode.INVALID_UPDATE_VERSION
    isr = _proposed_isr(proposed)
    if not _is_valid(partition, [replica.broker_id for replica in isr], proposed.leader_recovery_state):
        yield ErrorCode.INVALID_REQUEST
    if not all(_is_eligible(image, replica) for replica in isr):
        yield ErrorCode.INELIGIBLE_REPLICA


def _is_valid(partition: PartitionRegistration, isr: Sequence[int], recovery_state: int) -> bool:
    """True if the ISR contains the leader and only replicas of the partition, and only the leader while it recovers."""
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas) or partition.leader not in isr:
        return False
    if recovery_state == RECOVERING:
        return len(isr) == 1 and partition.leader_recovery_state == RECOVERING
    return recovery_state == RECOVERED


def _is_eligible(image: Image, replica: BrokerState) -> bool:
    """True if the replica may be in sync: its broker is active, and has the epoch in which it fetched."""
    broker = image.brokers.get(replica.broker_id)
    return broker is not None and broker.active and replica.broker_epoch in (ANY_EPOCH, broker.epoch)


def _refused(proposed: PartitionData, code: ErrorCode) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=proposed.partition_index,
        error_code=code,
        leader_id=0,
        leader_epoch=0,
        isr=[],
        partition_epoch=0,
    )


def _state(index: int, partition: PartitionRegistration) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=index,
        error_code=ErrorCode.NONE,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
