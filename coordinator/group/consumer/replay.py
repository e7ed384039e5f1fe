"""The replay of the records of consumer groups.

Source: the replay methods of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member
from coordinator.group.consumer.records import CLASSES, target_from_record
from coordinator.group.modern.replay import MemberChanges, fact, shared_table
from coordinator.group.regex import Resolved
from coordinator.group.state import Apply, GroupState
from protocol.coordinator_records.consumer_group import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)


def _put_partition_metadata(group: ConsumerGroup, key: object, value: object) -> None:
    """Marks a group with a record of Kafka 4.0, which the metadata hash has replaced."""
    group.has_partition_metadata = True


def _remove_partition_metadata(state: GroupState, group: ConsumerGroup, key: object) -> None:
    group.has_partition_metadata = False


def _put_pattern(
    group: ConsumerGroup, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue
) -> None:
    resolved = Resolved(frozenset(value.topics), value.version, value.timestamp)
    group.put_resolved(key.regular_expression, resolved)


def _remove_pattern(state: GroupState, group: ConsumerGroup, key: ConsumerGroupRegularExpressionKey) -> None:
    group.put_resolved(key.regular_expression, None)


APPLY: dict[type, Apply] = {
    **shared_table(
        ConsumerGroup,
        CLASSES,
        MemberChanges(Member, Member.described_by, Member.moved_by, Member.unassigned, target_from_record),
    ),
    ConsumerGroupPartitionMetadataKey: fact(ConsumerGroup, _put_partition_metadata, _remove_partition_metadata),
    ConsumerGroupRegularExpressionKey: fact(ConsumerGroup, _put_pattern, _remove_pattern),
}
"""The replay functions, by the class of a record's key."""
