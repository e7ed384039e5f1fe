"""A member of a share group: its description, its epoch, and its assignment.

Source: Kafka's ShareGroupMember (KIP-932).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator.group.assignment import NOTHING, Assignment
from coordinator.group.modern.group import JOINING, NO_EPOCH
from protocol.coordinator_records.share_group import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
)

STABLE: Final = 0
"""The only state of share group members: they never give partitions up before they get others."""


class ShareMember(NamedTuple):
    """A member as in its last records."""

    member_id: str
    member_epoch: int = JOINING
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    assigned: Assignment = NOTHING

    def described_by(self, value: ShareGroupMemberMetadataValue) -> ShareMember:
        """Returns the member after a record of its description."""
        return self._replace(
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
        )

    def moved_by(self, value: ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
        """Returns the member after a record of its epoch and partitions."""
        return self._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            assigned={topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions},
        )

    def unassigned(self) -> ShareMember:
        """Returns the member without epoch and partitions, as after the tombstone of its current assignment."""
        return self._replace(member_epoch=NO_EPOCH, previous_member_epoch=NO_EPOCH, assigned=NOTHING)
