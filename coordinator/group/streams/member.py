"""A member of a streams group: its description, its epochs, and its tasks.

Source: Kafka's StreamsGroupMember (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from coordinator.group.modern.group import JOINING, NO_EPOCH
from coordinator.group.streams.owned import NOTHING_OWNED, OwnedTasks, from_record
from coordinator.group.streams.reconciliation import MemberStanding, StreamsMemberState
from protocol.coordinator_records.streams_group import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
)

NO_TOPOLOGY_EPOCH = -1


class UserEndpoint(NamedTuple):
    """The address at which an application answers interactive queries."""

    host: str
    port: int


class StreamsMember(NamedTuple):
    """A member as in its last records."""

    member_id: str
    member_epoch: int = JOINING
    previous_member_epoch: int = JOINING
    state: StreamsMemberState = StreamsMemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str = ""
    """The id of the member's process; the members of one process are its stream threads."""
    endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = {}
    assigned: OwnedTasks = NOTHING_OWNED
    pending_revocation: OwnedTasks = NOTHING_OWNED

    @property
    def standing(self) -> MemberStanding:
        """The member's place in the reconciliation."""
        return MemberStanding(self.state, self.member_epoch, self.assigned, self.pending_revocation)

    def moved_to(self, standing: MemberStanding) -> StreamsMember:
        """Returns the member after a step; a heartbeat in flight may still have the previous epoch."""
        return self._replace(
            member_epoch=standing.epoch,
            previous_member_epoch=self.member_epoch,
            state=standing.state,
            assigned=standing.assigned,
            pending_revocation=standing.pending_revocation,
        )

    def succeeded_by(self, member_id: str) -> StreamsMember:
        """Returns the member that takes over its instance id and its tasks."""
        return self._replace(member_id=member_id, member_epoch=JOINING, previous_member_epoch=JOINING)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """True if it has its whole target assignment of this epoch."""
        return self.state is StreamsMemberState.STABLE and self.member_epoch == assignment_epoch

    def described_by(self, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
        """Returns the member after a record of its description."""
        endpoint = value.user_endpoint
        return self._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
            client_tags={tag.key: tag.value for tag in value.client_tags},
        )

    def moved_by(self, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
        """Returns the member after a record of its epoch and tasks."""
        is_defined = value.state in StreamsMemberState.__members__.values()
        epoch = value.member_epoch
        return self._replace(
            member_epoch=epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=StreamsMemberState(value.state) if is_defined else StreamsMemberState.UNKNOWN,
            assigned=from_record(value.active_tasks, value.standby_tasks, value.warmup_tasks, epoch),
            pending_revocation=from_record(
                value.active_tasks_pending_revocation,
                value.standby_tasks_pending_revocation,
                value.warmup_tasks_pending_revocation,
                epoch,
            ),
        )

    def unassigned(self) -> StreamsMember:
        """Returns the member without epoch and tasks, as after the tombstone of its current assignment."""
        return self._replace(
            member_epoch=NO_EPOCH,
            previous_member_epoch=NO_EPOCH,
            assigned=NOTHING_OWNED,
            pending_revocation=NOTHING_OWNED,
        )
