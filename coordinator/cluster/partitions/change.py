"""The one place where a change of a partition is made: who leads it, who is in sync, who may lead it otherwise.

A leader comes from the in-sync replicas; where there are none, from the eligible leader replicas; then it is the last
known leader; only where the topic allows it, any replica that is up. Source: Kafka's PartitionChangeBuilder, KIP-966.
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
"""metadata.version (3.6-IV0) before which brokers needed a new leader epoch when the ISR shrank (KAFKA-15021)."""

DIRECTORIES_SINCE = 17
"""metadata.version (3.7-IV2) since which partitions have directories (KIP-858)."""


class Election(Enum):
    """How far an election may go: move the lead to the first replica, keep the partition online, or lose records."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


class ElectionRules(NamedTuple):
    """The cluster's part in an election: which brokers may lead, and how."""

    is_acceptable: Callable[[int], bool]
    """Whether a broker is up, with the partition's directory, and may lead."""
    metadata_version: int
    min_isr: int = 1
    """min.insync.replicas of the topic, no more than it has replicas."""
    elr_enabled: bool = False
    election: Election = Election.ONLINE
    default_directory: Callable[[int], Uuid] = lambda _broker_id: NO_UUID
    """The directory of a replica that has none yet."""


class PartitionTarget(NamedTuple):
    """The state that a partition is to come to; None leaves a field as it is."""

    isr: Sequence[int] | None = None
    replicas: Sequence[int] | None = None
    adding_replicas: Sequence[int] | None = None
    removing_replicas: Sequence[int] | None = None
    directories: Mapping[int, Uuid] = MappingProxyType({})
    unclean_shutdowns: Iterable[int] = ()
    """Brokers that may have lost records: they are neither in sync nor eligible."""
    leader_recovery_state: int | None = None


class Elected(NamedTuple):
    """The leader, NO_LEADER if there is none to be had, and whether records may be lost by it."""

    leader: int
    unclean: bool = False


def change_partition(
    topic_id: Uuid, index: int, partition: PartitionRegistration, target: PartitionTarget, rules: ElectionRules
) -> PartitionChangeRecord | None:
    """The record that makes `target` of the partition, with the election that it takes; None if nothing changes."""
    change = _Change(partition, target, rules)
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    change.fill(record)
    return None if record == PartitionChangeRecord(partition_id=index, topic_id=topic_id) else record


class _Change:
    """A change in the making: what each list will be."""

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
        """A reassignment is over once all replicas that come are in sync; where more go than come, all that stay
        (PartitionReassignmentReplicas of 4.3)."""
        if not self.adding and not self.removing:
            return
        isr = [one for one in self.isr if one not in self.removing]
        replicas = [one for one in self.replicas if one not in self.removing]
        if not replicas or (self.removing and not isr) or not set(self.adding) <= set(isr):
            return
        if len(self.adding) >= len(self.removing) or set(replicas) <= set(isr):
            self.isr, self.replicas, self.adding, self.removing = isr, replicas, [], []

    def _collect_eligible(self) -> None:
        """Who leaves the ISR below min ISR stays eligible, until there are enough in sync again. Who is no replica any
        longer is not, which Kafka does not look at: its log is deleted."""
        if not self.rules.elr_enabled:
            return
        if len(self.isr) >= self.rules.min_isr:
            self.elr = []
            return
        unclean = set(self.target.unclean_shutdowns)
        candidates = dict.fromkeys((*self.partition.elr, *self.partition.isr))
        barred = {*self.isr, *unclean}
        self.elr = [one for one in candidates if one in self.replicas and one not in barred]

    def _set_leader(self, record: PartitionChangeRecord, elected: Elected) -> None:
        leader, before = elected.leader, self.partition.leader
        if leader != before:
            if leader in self.elr:
                self.isr = [leader]
                self.elr = [one for one in self.elr if one != leader]
            record.leader = leader
            if elected.unclean:
                record.isr = [leader]
                if self.partition.leader_recovery_state != RECOVERING:
                    record.leader_recovery_state = RECOVERING
        elif not set(self.partition.replicas) <= set(self.replicas):
            record.leader = before  # a replica less: a new epoch shuts it out

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
        """Who led last is noted when a partition loses its last in-sync replica, and forgotten once it is led. A
        partition may be offline while its only replica in sync is registered still: a reassignment that comes between
        finds no leader. Then it is that replica; Kafka notes broker -1, and the partition is lost with its eligible
        leaders."""
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
    """Who leads the partition when these are its replicas, in sync and eligible."""
    may_lead = isr or elr
    if rules.election is Election.PREFERRED and _is_valid(replicas[0], may_lead, rules):
        return Elected(replicas[0])
    if _is_valid(partition.leader, may_lead, rules):
        return Elected(partition.leader)
    clean = next((one for one in replicas if _is_valid(one, may_lead, rules)), None)
    if clean is not None:
        return Elected(clean)
    last_known = [one for one in partition.last_known_elr if one in replicas]
    if rules.elr_enabled and not may_lead and len(last_known) == 1 and rules.is_acceptable(last_known[0]):
        return Elected(last_known[0], unclean=True)
    if rules.election is Election.UNCLEAN:
        up = next((one for one in replicas if rules.is_acceptable(one)), None)
        if up is not None:
            return Elected(up, unclean=True)
    return Elected(NO_LEADER)


def _is_valid(broker_id: int, may_lead: Sequence[int], rules: ElectionRules) -> bool:
    return broker_id in may_lead and rules.is_acceptable(broker_id)
