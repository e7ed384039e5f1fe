"""One member of a share group: what it said of itself, its epoch, and what it is assigned.

Source: Kafka's ShareGroupMember (KIP-932).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator.group.assignment import NOTHING, Assignment
from coordinator.group.modern.group import NO_EPOCH
from protocol.coordinator_records.share_group import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
)

JOINING: Final = 0
LEAVING: Final = -1

STABLE: Final = 0
"""The one state that members of share groups are in: they give nothing up before they take something else."""


class ShareMember(NamedTuple):
    """A member as its last records tell it."""

    member_id: str
    member_epoch: int = JOINING
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    assigned: Assignment = NOTHING

    def described_by(self, value: ShareGroupMemberMetadataValue) -> ShareMember:
        """The member after a record of what it says of itself."""
        return self._replace(
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
        )

    def moved_by(self, value: ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
        """The member after a record of its epoch and partitions."""
        return self._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            assigned={topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions},
        )

    def unassigned(self) -> ShareMember:
        """Returns the member without epoch and partitions, as the end of its current assignment leaves it."""
        return self._replace(member_epoch=NO_EPOCH, previous_member_epoch=NO_EPOCH, assigned=NOTHING)
