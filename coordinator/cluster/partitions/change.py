"""The one place that computes a change of a partition: its leader, in-sync replicas and eligible leader replicas.

The leader is elected from the in-sync replicas. If there are none, it is an eligible leader replica, or else the last
known leader. Only if the topic allows unclean elections, it may be any live replica.

Source: Kafka's PartitionChangeBuilder, KIP-966.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from coordinator.cluster.topics.topic import LEADER_UNCHANGED, NO_LEADER, RECOVERING, PartitionRegistration
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.types import NO_UUID, Uuid

SHRINK_BUMPS_EPOCH_BEFORE = 12
"""The metadata.version (3.6-IV0) before which brokers needed a new leader epoch when the ISR shrank (KAFKA-15021)."""

DIRECTORIES_SINCE = 17
"""The metadata.version (3.7-IV2) from which partitions have directories (KIP-858)."""


class Election(Enum):
    """The purpose of an election: elect the preferred leader, keep the partition online, or accept the loss of
    records."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


class ElectionRules(NamedTuple):
    """The cluster's rules for an election: which brokers may lead, and how."""

    is_acceptable: Callable[[int], bool]
    """Returns True for a broker that is active, has the replica's directory online, and may lead."""
    metadata_version: int
    min_isr: int = 1
    """min.insync.replicas of the topic, or the number of replicas if that is lower."""
    elr_enabled: bool = False
    election: Election = Election.ONLINE
    default_directory: Callable[[int], Uuid] = lambda _broker_id: NO_UUID
    """Returns the directory of a replica that has none yet, by its broker."""


class PartitionTarget(NamedTuple):
    """The requested state of a partition; None leaves a field unchanged."""

    isr: Sequence[int] | None = None
    replicas: Sequence[int] | None = None
    adding_replicas: Sequence[int] | None = None
    removing_replicas: Sequence[int] | None = None
    directories: Mapping[int, Uuid] = MappingProxyType({})
    unclean_shutdowns: Iterable[int] = ()
    """Brokers that may have lost records: they are neither in sync nor eligible."""
    leader_recovery_state: int | None = None


class Elected(NamedTuple):
    """The leader, or NO_LEADER if there is no candidate, and whether the election may lose records."""

    leader: int
    unclean: bool = False


def change_partition(
    topic_id: Uuid, index: int, partition: PartitionRegistration, target: PartitionTarget, rules: ElectionRules
) -> PartitionChangeRecord | None:
    """Returns the record that brings the partition to `target`, including the election that this needs; None if nothing
    changes.
    """
    change = _Change(partition, target, rules)
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    change.fill(record)
    return None if record == PartitionChangeRecord(partition_id=index, topic_id=topic_id) else record


class _Change:
    """A change that is being computed, with the new value of each list."""

    def __init__(self, partition: PartitionRegistration, target: PartitionTarget, rules: ElectionRules) -> None:
        self.partition = partition
        self.target = target
        self.rules = rules
        self.isr = _or(target.isr, partition.isr)
        self.replicas = _or(target.replicas, partition.replicas)
        self.adding = _or(target.adding_replicas, partition.adding_replicas)
        self.removing = _or(target.removing_replicas, partition.removing_replicas)
        self.elr = list(partition.elr)

    def fill(self, record: PartitionChangeRecord) -> None:
        self._complete_reassignment()
        self._collect_eligible()
        elected = elect(self.partition, self.isr, self.elr, self.replicas, self.rules)
        self._set_leader(record, elected)
        self._set_isr_and_elr(record)
        self._set_last_known_leader(record)
        self._set_assignment(record)
        state = self.target.leader_recovery_state
        if state is not None and state != self.partition.leader_recovery_state:
            record.leader_recovery_state = state

    def _complete_reassignment(self) -> None:
        """Completes a reassignment once all added replicas are in sync. If more replicas are removed than added, all
        remaining replicas must be in sync (PartitionReassignmentReplicas of 4.3).
        """
        if not self.adding and not self.removing:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        if not replicas or (self.removing and not isr) or not set(self.adding) <= set(isr):
            return
        if len(self.adding) >= len(self.removing) or set(replicas) <= set(isr):
            self.isr, self.replicas, self.adding, self.removing = isr, replicas, [], []

    def _collect_eligible(self) -> None:
        """Keeps replicas that leave the ISR below min ISR eligible until enough replicas are in sync again. Excludes
        brokers that no longer have a replica, because their logs are deleted; Kafka doesn't exclude them.
        """
        if not self.rules.elr_enabled:
            return
        if len(self.isr) >= self.rules.min_isr:
            self.elr = []
            return
        unclean = set(self.target.unclean_shutdowns)
        candidates = dict.fromkeys((*self.partition.elr, *self.partition.isr))
        barred = {*self.isr, *unclean}
        self.elr = [replica for replica in candidates if replica in self.replicas and replica not in barred]

    def _set_leader(self, record: PartitionChangeRecord, elected: Elected) -> None:
        leader, before = elected.leader, self.partition.leader
        if leader != before:
            if leader in self.elr:
                self.isr = [leader]
                self.elr = [replica for replica in self.elr if replica != leader]
            record.leader = leader
            if elected.unclean:
                record.isr = [leader]
                if self.partition.leader_recovery_state != RECOVERING:
                    record.leader_recovery_state = RECOVERING
        elif not set(self.partition.replicas) <= set(self.replicas):
            record.leader = before  # a replica was removed: a new epoch fences it

    def _set_isr_and_elr(self, record: PartitionChangeRecord) -> None:
        partition, rules = self.partition, self.rules
        if record.isr is not None or not rules.elr_enabled:
            self.elr = []
        if self.elr != list(partition.elr):
            record.eligible_leader_replicas = self.elr
        if record.isr is None and (self.isr or rules.elr_enabled) and self.isr != list(partition.isr):
            record.isr = self.isr
        shrinks = record.isr is not None and not set(partition.isr) <= set(record.isr)
        if shrinks and record.leader == LEADER_UNCHANGED and rules.metadata_version < SHRINK_BUMPS_EPOCH_BEFORE:
            record.leader = partition.leader

    def _set_last_known_leader(self, record: PartitionChangeRecord) -> None:
        """Sets the last known leader when the partition loses its last in-sync replica, and clears it once the
        partition has a leader.

        A partition can be offline while its only in-sync replica is still in the ISR. If a reassignment empties the ISR
        then, that replica is the last known leader. Kafka records broker -1 there, and the partition is lost along with
        its eligible leaders.
        """
        partition = self.partition
        if not self.rules.elr_enabled:
            return
        if record.isr == [] and partition.last_known_elr != (partition.leader,):
            if partition.leader in self.replicas:
                record.last_known_elr = [partition.leader]
            elif partition.leader == NO_LEADER and len(partition.isr) == 1 and not partition.last_known_elr:
                record.last_known_elr = [*partition.isr]
        elif partition.last_known_elr and (
            record.leader >= 0 or (partition.leader != NO_LEADER and record.leader != NO_LEADER)
        ):
            record.last_known_elr = []

    def _set_assignment(self, record: PartitionChangeRecord) -> None:
        partition = self.partition
        if self.rules.metadata_version >= DIRECTORIES_SINCE and self.replicas:
            directories = [self._directory(broker_id) for broker_id in self.replicas]
            if tuple(directories) != (partition.directories or (NO_UUID,) * len(partition.replicas)):
                record.directories = directories
        if self.replicas and self.replicas != list(partition.replicas):
            record.replicas = self.replicas
        if self.removing != list(partition.removing_replicas):
            record.removing_replicas = self.removing
        if self.adding != list(partition.adding_replicas):
            record.adding_replicas = self.adding

    def _directory(self, broker_id: int) -> Uuid:
        directory = self.target.directories.get(broker_id) or self.partition.directory_of(broker_id)
        if directory is not None:
            return directory
        return NO_UUID if broker_id in self.partition.replicas else self.rules.default_directory(broker_id)


def _or(new: Sequence[int] | None, old: tuple[int, ...]) -> list[int]:
    return list(old if new is None else new)


def elect(
    partition: PartitionRegistration,
    isr: Sequence[int],
    elr: Sequence[int],
    replicas: Sequence[int],
    rules: ElectionRules,
) -> Elected:
    """Returns the leader of a partition with these in-sync replicas, eligible replicas and replicas."""
    may_lead = isr or elr
    if rules.election is Election.PREFERRED and _is_valid(replicas[0], may_lead, rules):
        return Elected(replicas[0])
    if _is_valid(partition.leader, may_lead, rules):
        return Elected(partition.leader)
    clean = next((replica for replica in replicas if _is_valid(replica, may_lead, rules)), None)
    if clean is not None:
        return Elected(clean)
    last_known = [replica for replica in partition.last_known_elr if replica in replicas]
    if rules.elr_enabled and not may_lead and len(last_known) == 1 and rules.is_acceptable(last_known[0]):
        return Elected(last_known[0], unclean=True)
    if rules.election is Election.UNCLEAN:
        up = next((replica for replica in replicas if rules.is_acceptable(replica)), None)
        if up is not None:
            return Elected(up, unclean=True)
    return Elected(NO_LEADER)


def _is_valid(broker_id: int, may_lead: Sequence[int], rules: ElectionRules) -> bool:
    return broker_id in may_lead and rules.is_acceptable(broker_id)
