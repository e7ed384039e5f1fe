"""AlterPartition as a controller decides on it. Source: Kafka's ReplicationControlManager.alterPartition (KIP-903)."""

from __future__ import annotations

from coordinator.cluster.brokers.heartbeat import check_broker_epoch
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.decided import Decided
from coordinator.cluster.image import Image
from coordinator.cluster.partitions.change import PartitionTarget
from coordinator.cluster.partitions.changes import PartitionChanges
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.topics.topic import PartitionRegistration, Topic, changed
from protocol.errors import ErrorCode
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)

ANY_EPOCH = -1


def alter_partition(
    image: Image, request: AlterPartitionRequest, configs: ConfigRules
) -> Decided[AlterPartitionResponse]:
    """The in-sync replicas as the leader would have them, or an error for the partition."""
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    changes = PartitionChanges(image, configs)
    records: list[MetadataRecord] = []
    topics = []
    for named in request.topics:
        topic = image.topic_by_id(named.topic_id)
        answers = [
            _refused(data, ErrorCode.UNKNOWN_TOPIC_ID)
            if topic is None
            else _altered(image, request, topic, data, changes, records)
            for data in named.partitions
        ]
        topics.append(ResponseTopicData(topic_id=named.topic_id, partitions=answers))
    return Decided(records, AlterPartitionResponse(error_code=0, topics=topics))


def _altered(
    image: Image,
    request: AlterPartitionRequest,
    topic: Topic,
    data: PartitionData,
    changes: PartitionChanges,
    records: list[MetadataRecord],
) -> ResponsePartitionData:
    partition = topic.partitions[data.partition_index]
    code = refusal(image, request.broker_id, partition, data)
    if code is not ErrorCode.NONE:
        return _refused(data, code)
    isr = [state.broker_id for state in data.new_isr_with_epochs]
    record = changes.change(topic, data.partition_index, PartitionTarget(isr=isr))
    after = partition
    if record is not None:
        records.append(record)
        after = changed(partition, record)
    return ResponsePartitionData(
        partition_index=data.partition_index,
        error_code=0,
        leader_id=after.leader,
        leader_epoch=after.leader_epoch,
        isr=list(after.isr),
        partition_epoch=after.partition_epoch,
    )


def _refused(data: PartitionData, code: ErrorCode) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=data.partition_index, error_code=code, leader_id=-1, leader_epoch=-1, isr=[], partition_epoch=-1
    )


def refusal(image: Image, broker_id: int, partition: PartitionRegistration, data: PartitionData) -> ErrorCode:
    """Returns why a change is not made."""
    if data.leader_epoch > partition.leader_epoch or data.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if data.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    isr = {state.broker_id for state in data.new_isr_with_epochs}
    if not isr <= set(partition.replicas) or broker_id not in isr:
        return ErrorCode.INVALID_REQUEST
    for state in data.new_isr_with_epochs:
        broker = image.brokers.get(state.broker_id)
        if broker is None or not broker.active or state.broker_epoch not in (ANY_EPOCH, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
