"""A topic and its partitions in the metadata (org.apache.kafka.metadata.PartitionRegistration)."""

from __future__ import annotations

from typing import NamedTuple

from protocol.metadata_records.topics import PartitionChangeRecord, PartitionRecord
from protocol.types import Uuid

NO_LEADER = -1
LEADER_UNCHANGED = -2
"""The leader field of a PartitionChangeRecord that keeps the leader and its epoch."""

RECOVERED = 0
RECOVERING = 1
"""Leader recovery state: the leader was elected uncleanly and has not yet repaired its log (KIP-704)."""
RECOVERY_UNCHANGED = -1


class PartitionRegistration(NamedTuple):
    """A partition's assignment and leadership. `directories` has an entry for each of `replicas`, in the same order
    (KIP-858).
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[Uuid, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()  # eligible leader replicas: out of sync, but with every acknowledged record (KIP-966)
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED

    @property
    def reassigning(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    def directory_of(self, broker_id: int) -> Uuid | None:
        """Returns the directory of this broker's replica; None if the broker has none, or the record is too old to have
        directories.
        """
        if broker_id not in self.replicas:
            return None
        at = self.replicas.index(broker_id)
        return self.directories[at] if at < len(self.directories) else None

    def to_record(self, topic_id: Uuid, index: int) -> PartitionRecord:
        """Returns the record that creates this partition."""
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.elr) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )


def from_record(record: PartitionRecord) -> PartitionRegistration:
    """Returns the partition that a PartitionRecord creates."""
    return PartitionRegistration(
        replicas=tuple(record.replicas),
        isr=tuple(record.isr),
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        directories=tuple(record.directories),
        removing_replicas=tuple(record.removing_replicas),
        adding_replicas=tuple(record.adding_replicas),
        elr=tuple(record.eligible_leader_replicas or ()),
        last_known_elr=tuple(record.last_known_elr or ()),
        leader_recovery_state=record.leader_recovery_state,
    )


def changed(partition: PartitionRegistration, record: PartitionChangeRecord) -> PartitionRegistration:
    """Returns the partition after a PartitionChangeRecord; null fields stay unchanged. A record with a leader, even the
    same, begins a new leader epoch; every record begins a new partition epoch.
    """
    leads_anew = record.leader != LEADER_UNCHANGED
    return PartitionRegistration(
        replicas=_or(record.replicas, partition.replicas),
        isr=_or(record.isr, partition.isr),
        leader=record.leader if leads_anew else partition.leader,
        leader_epoch=partition.leader_epoch + leads_anew,
        partition_epoch=partition.partition_epoch + 1,
        directories=partition.directories if record.directories is None else tuple(record.directories),
        removing_replicas=_or(record.removing_replicas, partition.removing_replicas),
        adding_replicas=_or(record.adding_replicas, partition.adding_replicas),
        elr=_or(record.eligible_leader_replicas, partition.elr),
        last_known_elr=_or(record.last_known_elr, partition.last_known_elr),
        leader_recovery_state=(
            partition.leader_recovery_state
            if record.leader_recovery_state == RECOVERY_UNCHANGED
            else record.leader_recovery_state
        ),
    )


def _or(new: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else tuple(new)


class Topic:
    """A topic and its partitions by index. Only its image changes it, when a record is applied."""

    __slots__ = ("name", "owner", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: Uuid, owner: object = None) -> None:
        self.name = name
        self.topic_id = topic_id
        self.owner = owner
        """The image that may change this topic; all other images share the topic unchanged."""
        self.partitions: dict[int, PartitionRegistration] = {}

    def copy(self, owner: object) -> Topic:
        """Returns a copy for another owner."""
        other = Topic(self.name, self.topic_id, owner)
        other.partitions = self.partitions.copy()
        return other

    @property
    def replication_factor(self) -> int:
        """The number of replicas of its first partition, which Kafka uses for the topic."""
        return len(next(iter(self.partitions.values())).replicas) if self.partitions else 0

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {len(self.partitions)} partitions)"
