"""The replay of the records of share groups.

Source: the replay methods of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from coordinator.group.modern.replay import MemberChanges, fact, shared_table
from coordinator.group.share.group import ShareGroup
from coordinator.group.share.member import ShareMember
from coordinator.group.share.records import CLASSES, target_from_record
from coordinator.group.share.topics import NO_STATE, from_record
from coordinator.group.state import Apply, GroupState
from protocol.coordinator_records.share_group import (
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
)


def _put_state_topics(group: ShareGroup, key: object, value: ShareGroupStatePartitionMetadataValue) -> None:
    group.topics = from_record(value)


def _remove_state_topics(state: GroupState, group: ShareGroup, key: object) -> None:
    group.topics = NO_STATE


APPLY: dict[type, Apply] = {
    **shared_table(
        ShareGroup,
        CLASSES,
        MemberChanges(
            ShareMember, ShareMember.described_by, ShareMember.moved_by, ShareMember.unassigned, target_from_record
        ),
    ),
    ShareGroupStatePartitionMetadataKey: fact(ShareGroup, _put_state_topics, _remove_state_topics),
}
"""The replay functions, by the class of a record's key."""
