"""The records of streams groups in `__consumer_offsets`: a function for each kind, and for its tombstone.

Source: StreamsCoordinatorRecordHelpers of Apache Kafka 4.4 (KIP-1071, KIP-1251, KIP-1263, KIP-1331).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator.group.modern.records import ModernRecords, RecordClasses
from coordinator.group.records import GroupRecord
from coordinator.group.streams.member import StreamsMember
from coordinator.group.streams.owned import active_to_record, to_record
from coordinator.group.streams.tasks import TaskAssignment, Tasks
from coordinator.group.streams.topology import Topology
from protocol.coordinator_records.streams_group import (
    Endpoint,
    KeyValue,
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    TaskIds,
)

NONE: Final = -1


class Description(NamedTuple):
    """The fields of a group's record besides its epoch."""

    metadata_hash: int = 0
    validated_topology_epoch: int = NONE
    """The epoch of the topology if all of its topics existed when the record was written; -1 otherwise."""
    assignment_configs: Mapping[str, str] = {}
    """The options of the assignor that the group's epoch takes into account."""
    stored_description_epoch: int = NONE
    """The epoch of the topology description that an Apache Kafka broker's plugin has; kept as it is (KIP-1331)."""
    failed_description_epoch: int = NONE


def description_of(value: StreamsGroupMetadataValue) -> Description:
    """Returns the fields of a group's record."""
    return Description(
        value.metadata_hash,
        value.validated_topology_epoch,
        {config.key: config.value for config in value.last_assignment_configs or ()},
        value.stored_description_topology_epoch,
        value.failed_description_topology_epoch,
    )


def epoch(group_id: str, group_epoch: int, description: Description) -> GroupRecord:
    """Returns the record of the group's epoch."""
    value = StreamsGroupMetadataValue(
        epoch=group_epoch,
        metadata_hash=description.metadata_hash,
        validated_topology_epoch=description.validated_topology_epoch,
        last_assignment_configs=[
            LastAssignmentConfig(key=key, value=value) for key, value in description.assignment_configs.items()
        ],
        stored_description_topology_epoch=description.stored_description_epoch,
        failed_description_topology_epoch=description.failed_description_epoch,
    )
    return GroupRecord(StreamsGroupMetadataKey(group_id=group_id), value)


def topology(group_id: str, described: Topology) -> GroupRecord:
    """Returns the record of the group's topology."""
    return GroupRecord(StreamsGroupTopologyKey(group_id=group_id), described.record())


def topology_gone(group_id: str) -> GroupRecord:
    return GroupRecord(StreamsGroupTopologyKey(group_id=group_id))


def member_value(described: StreamsMember) -> StreamsGroupMemberMetadataValue:
    """Returns a member's description."""
    endpoint = described.endpoint
    return StreamsGroupMemberMetadataValue(
        instance_id=described.instance_id,
        rack_id=described.rack_id,
        client_id=described.client_id,
        client_host=described.client_host,
        rebalance_timeout_ms=described.rebalance_timeout_ms,
        topology_epoch=described.topology_epoch,
        process_id=described.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[KeyValue(key=key, value=value) for key, value in sorted(described.client_tags.items())],
    )


def target_value(assignment: TaskAssignment) -> StreamsGroupTargetAssignmentMemberValue:
    """Returns a member's target assignment."""
    return StreamsGroupTargetAssignmentMemberValue(
        active_tasks=assignment.active.ids(TaskIds),
        standby_tasks=assignment.standby.ids(TaskIds),
        warmup_tasks=assignment.warmup.ids(TaskIds),
    )


def target_from_record(value: StreamsGroupTargetAssignmentMemberValue) -> TaskAssignment:
    """Returns the target assignment in a record."""
    return TaskAssignment(
        Tasks.from_ids(value.active_tasks), Tasks.from_ids(value.standby_tasks), Tasks.from_ids(value.warmup_tasks)
    )


def current_value(moved: StreamsMember) -> StreamsGroupCurrentMemberAssignmentValue:
    """Returns a member's epoch and tasks."""
    return StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=moved.member_epoch,
        previous_member_epoch=moved.previous_member_epoch,
        state=moved.state,
        active_tasks=active_to_record(moved.assigned.active),
        standby_tasks=to_record(moved.assigned.standby),
        warmup_tasks=to_record(moved.assigned.warmup),
        active_tasks_pending_revocation=active_to_record(moved.pending_revocation.active),
        standby_tasks_pending_revocation=to_record(moved.pending_revocation.standby),
        warmup_tasks_pending_revocation=to_record(moved.pending_revocation.warmup),
    )


CLASSES: Final = RecordClasses(
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupCurrentMemberAssignmentKey,
    member_value,
    target_value,
    current_value,
)

COMMON: Final = ModernRecords(CLASSES)
"""The records that all types of modern groups have."""
