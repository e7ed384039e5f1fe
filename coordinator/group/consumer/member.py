"""A member of a consumer group: its description, its epochs, and its partitions.

Source: Kafka's ConsumerGroupMember and MemberState (KIP-848, KIP-1251).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from coordinator.group.assignment import Assignment
from coordinator.group.modern.group import JOINING, NO_EPOCH
from protocol.coordinator_records.consumer_group import (
    AssignedTopicPartitions,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)
from protocol.types import Uuid

Owned = Mapping[Uuid, Mapping[int, int]]
"""Partitions by topic id, each with the member epoch at which it was assigned."""

NO_PARTITIONS: Owned = {}


class MemberState(IntEnum):
    """A member's progress towards the target assignment."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """The member has not yet confirmed that it gave up partitions."""
    UNRELEASED_PARTITIONS = 2
    """The member waits for partitions that other members have not yet given up."""
    UNKNOWN = 127
    """A state of a later Kafka version."""


class Member(NamedTuple):
    """A member as in its last records."""

    member_id: str
    member_epoch: int = JOINING
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: Owned = NO_PARTITIONS
    pending_revocation: Owned = NO_PARTITIONS
    classic: ClassicMemberMetadata | None = None
    """Data of a member that uses the classic protocol; None for others."""

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @property
    def classic_protocols(self) -> list[ClassicProtocol]:
        """The assignment strategies that it supports, in its order of preference; empty if it uses the consumer
        protocol."""
        return [] if self.classic is None else self.classic.supported_protocols

    @property
    def classic_session_timeout_ms(self) -> int | None:
        """The session timeout that it joined with; None if it uses the consumer protocol."""
        return None if self.classic is None else self.classic.session_timeout_ms

    @property
    def regex(self) -> str | None:
        """The regular expression that it subscribes with; None without one, which a request sends as null or empty."""
        return self.topic_regex or None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """True if it has its whole target assignment of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def at(self, member_epoch: int) -> Member:
        """Returns the member in a new epoch; a heartbeat in flight may still have the previous epoch."""
        return self._replace(member_epoch=member_epoch, previous_member_epoch=self.member_epoch)

    def succeeded_by(self, member_id: str) -> Member:
        """Returns the member that takes over its instance id and its partitions."""
        return self._replace(member_id=member_id, member_epoch=JOINING, previous_member_epoch=JOINING)

    def assignment_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """Returns the epoch at which it was assigned a partition that it owns or must give up; None for other
        partitions."""
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def described_by(self, value: ConsumerGroupMemberMetadataValue) -> Member:
        """Returns the member after a record of its description."""
        return self._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def moved_by(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> Member:
        """Returns the member after a record of its epoch and partitions."""
        is_defined = value.state in MemberState.__members__.values()
        return self._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if is_defined else MemberState.UNKNOWN,
            assigned=_owned(value.assigned_partitions, value.member_epoch),
            pending_revocation=_owned(value.partitions_pending_revocation, value.member_epoch),
        )

    def unassigned(self) -> Member:
        """Returns the member without epoch and partitions, as after the tombstone of its current assignment."""
        return self._replace(
            member_epoch=NO_EPOCH,
            previous_member_epoch=NO_EPOCH,
            assigned=NO_PARTITIONS,
            pending_revocation=NO_PARTITIONS,
        )


def _owned(topics: Iterable[AssignedTopicPartitions], member_epoch: int) -> Owned:
    """Returns the partitions of a record. Records from before Kafka 4.3 have no assignment epochs: with the member's
    own epoch no commit is fenced wrongly."""
    result: dict[Uuid, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        result[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return result


def at_epoch(assignment: Assignment, epoch: int) -> Owned:
    """Returns an assignment with all of it assigned at one epoch."""
    return {topic_id: dict.fromkeys(sorted(partitions), epoch) for topic_id, partitions in assignment.items()}


def without_epochs(owned: Owned) -> dict[Uuid, list[int]]:
    """Returns the partitions without epochs, in order."""
    return {topic_id: sorted(partitions) for topic_id, partitions in owned.items()}
