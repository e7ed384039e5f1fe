"""What a node writes of itself into the metadata: that it is there, leads again, or goes.

On one node the broker and its controller are the same process, so that registering, unfencing and the elections that
follow are one batch. Source: Kafka's ActivationRecordsGenerator, ClusterControlManager.registerBroker and
ReplicationControlManager (handleBrokerUnfenced, handleBrokerInControlledShutdown, handleBrokerFenced).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from coordinator.cluster.broker_info import Broker, Controller, Endpoint
from coordinator.cluster.features import SUPPORTED, elr_safety_records
from coordinator.cluster.image import ELR_VERSION, Image
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.topic import LEADER_UNCHANGED, NO_LEADER, RECOVERED, RECOVERY_UNCHANGED, Partition
from protocol.errors import ErrorCode, KafkaError
from protocol.metadata_records.log import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from protocol.metadata_records.nodes import (
    BrokerRegistrationChangeRecord,
    UnregisterBrokerRecord,
)
from protocol.metadata_records.settings import FeatureLevelRecord
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.types import NO_UUID, TopicPartition, Uuid

CONTROLLER_REGISTRATION_VERSION = 15
"""metadata.version since which controllers register (3.7-IV0, KIP-919)."""

YES = 1
NO = -1


def activation_records(
    image: Image, bootstrap: Sequence[MetadataRecord], options: ClusterOptions
) -> list[MetadataRecord]:
    """What makes an empty log a cluster's: its features, in a metadata transaction (KIP-868)."""
    elr = any(
        isinstance(record, FeatureLevelRecord) and record.name == ELR_VERSION and record.feature_level > 0
        for record in bootstrap
    )
    safety = elr_safety_records(image, options.min_insync_replicas) if elr else ()
    return [BeginTransactionRecord(name="Bootstrap records"), *bootstrap, *safety, EndTransactionRecord()]


def abort_record() -> AbortTransactionRecord:
    """Ends a metadata transaction that the last controller left open."""
    return AbortTransactionRecord(reason="Controller failover")


def registration_records(
    image: Image,
    options: ClusterOptions,
    endpoints: Sequence[Endpoint],
    log_dirs: Sequence[Uuid],
    incarnation_ids: tuple[Uuid, Uuid],
    *,
    clean: bool,
) -> list[MetadataRecord]:
    """The node is there, as controller and broker, unfenced, and leads its partitions. The broker's epoch is the offset
    that its record will have. After an unclean stop all of them get a new leader epoch, for consumers to notice that
    records may be gone (KIP-320)."""
    records: list[MetadataRecord] = []
    if image.metadata_version >= CONTROLLER_REGISTRATION_VERSION:
        controller = Controller(options.node_id, incarnation_ids[0], (options.controller_listener,), SUPPORTED)
        records.append(controller.to_record())
    epoch = image.offset + 1 + len(records)
    broker = Broker(
        broker_id=options.node_id,
        epoch=epoch,
        incarnation_id=incarnation_ids[1],
        endpoints=tuple(endpoints),
        features=SUPPORTED,
        rack=options.rack,
        log_dirs=tuple(log_dirs),
    )
    records.append(broker.to_record())
    records.append(BrokerRegistrationChangeRecord(broker_id=options.node_id, broker_epoch=epoch, fenced=NO))
    records += leading_again(image, broker, clean=clean)
    return records


def leading_again(image: Image, broker: Broker, *, clean: bool) -> Iterator[PartitionChangeRecord]:
    """Elects the broker wherever nobody leads and it may, and wherever it still leads after an unclean stop; takes it
    out where its replica is in a directory that it no longer has."""
    broker_id = broker.broker_id
    for topic in image.topics():
        for index, partition in topic.partitions.items():
            leaderless = partition.leader == NO_LEADER and broker_id in _electable(partition)
            if not broker.has_online(partition.directory_of(broker_id)):
                if partition.leader == broker_id:
                    yield _departed(image, topic.topic_id, index, partition, broker_id)
            elif leaderless or (partition.leader == broker_id and not clean):
                yield _elected(topic.topic_id, index, partition, broker_id)


def offline_records(image: Image, broker_id: int, failed: Container[Uuid]) -> list[MetadataRecord]:
    """Log directories of the broker have failed: it leads nothing that is there, and is registered with the others
    (handleDirectoriesOffline, KIP-858)."""
    broker = image.brokers[broker_id]
    left = [directory for directory in broker.log_dirs if directory not in failed]
    if len(left) == len(broker.log_dirs):
        return []
    records: list[MetadataRecord] = [
        _departed(image, topic.topic_id, index, partition, broker_id)
        for topic in image.topics()
        for index, partition in topic.partitions.items()
        if broker_id in partition.isr and partition.directory_of(broker_id) in failed
    ]
    records.append(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, log_dirs=left))
    return records


def _electable(partition: Partition) -> Sequence[int]:
    return partition.isr or partition.elr or partition.last_known_elr or partition.replicas


def _elected(topic_id: Uuid, index: int, partition: Partition, leader: int) -> PartitionChangeRecord:
    """The leader starts a new epoch, alone in sync if it was not among the in-sync replicas."""
    return PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        leader=leader,
        isr=None if leader in partition.isr else [leader],
        eligible_leader_replicas=[] if partition.elr else None,
        last_known_elr=[] if partition.last_known_elr else None,
        leader_recovery_state=RECOVERED if partition.leader_recovery_state else RECOVERY_UNCHANGED,
    )


def unregister_records(image: Image, broker_id: int) -> list[MetadataRecord]:
    """UnregisterBroker: a broker that is gone for good leaves every in-sync set, and is forgotten.

    Raises KafkaError(BROKER_ID_NOT_REGISTERED); INVALID_REQUEST for the one that is asked, which is not gone.
    """
    broker = image.brokers.get(broker_id)
    if broker is None:
        message = f"Broker ID {broker_id} is not currently registered"
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    if broker_id == image.controller_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker {broker_id} is running: stop it before it is unregistered."
        )
    gone = UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch)
    return [*_departures(image, broker_id), gone]


def directory_records(
    image: Image, broker_id: int, places: Iterable[tuple[TopicPartition, Uuid]]
) -> Iterator[PartitionChangeRecord]:
    """AssignReplicasToDirs: where the broker's replicas are, if the metadata says otherwise (KIP-858)."""
    for (name, index), directory in places:
        topic = image.topic(name)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None or broker_id not in partition.replicas:
            continue
        if partition.directory_of(broker_id) != directory:
            known = partition.directories or (NO_UUID,) * len(partition.replicas)
            at = partition.replicas.index(broker_id)
            directories = [*known[:at], directory, *known[at + 1 :]]
            yield PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, directories=directories)


def shutdown_records(image: Image, broker_id: int) -> list[MetadataRecord]:
    """The broker goes in order: it leaves the in-sync sets, stays eligible to lead, and is fenced."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return []
    leaving = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=YES)
    fenced = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=YES)
    return [leaving, *_departures(image, broker_id), fenced]


def _departures(image: Image, broker_id: int) -> Iterator[PartitionChangeRecord]:
    for topic in image.topics():
        for index, partition in topic.partitions.items():
            if broker_id in partition.isr:
                yield _departed(image, topic.topic_id, index, partition, broker_id)


def _departed(image: Image, topic_id: Uuid, index: int, partition: Partition, broker_id: int) -> PartitionChangeRecord:
    """Without the broker: another in-sync replica leads, or, where it was the last, nobody until it is back."""
    others = [one for one in partition.isr if one != broker_id]
    heirs = [one for one in partition.replicas if one in others and image.is_active(one)]
    leader = LEADER_UNCHANGED
    if partition.leader == broker_id:
        leader = heirs[0] if heirs else NO_LEADER
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id, leader=leader)
    if others or image.elr_enabled:
        record.isr = others
    if image.elr_enabled and not others:
        record.eligible_leader_replicas = [*partition.elr, broker_id]
        record.last_known_elr = [broker_id]
    return record
