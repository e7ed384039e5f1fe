"""A share group: its epochs, members and target assignment, as in its records.

Only replay changes it, record by record. Source: Kafka's ShareGroup (KIP-932).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from coordinator.group.assignment import NOTHING, Assignment
from coordinator.group.group import CommitCheck, GroupType
from coordinator.group.modern.group import ModernGroup
from coordinator.group.offsets.offsets import Offset
from coordinator.group.records import GroupRecord
from coordinator.group.share import records
from coordinator.group.share.member import ShareMember
from coordinator.group.share.topics import NO_STATE
from protocol.errors import ErrorCode, KafkaError

PROTOCOL_TYPE: Final = "share"

EMPTY: Final = "Empty"
STABLE: Final = "Stable"


class ShareGroup(ModernGroup[ShareMember, Assignment]):
    """`coordinator.group.group.Group` of members that share partitions."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.records = records.COMMON
        self.no_target = NOTHING
        self.subscriptions: Counter[str] = Counter()
        """The number of members that subscribe to each topic."""
        self.topics = NO_STATE
        """The partitions that have share group state."""

    def __repr__(self) -> str:
        return f"ShareGroup({self.group_id!r}, {self.state_name}, epoch {self.epoch}, {list(self.members)})"

    @property
    def type(self) -> GroupType:
        return GroupType.SHARE

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    @property
    def state_name(self) -> str:
        return STABLE if self.members else EMPTY

    @property
    def expires(self) -> bool:
        return False

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, version: int, *, transactional: bool
    ) -> CommitCheck:
        raise self._no_offsets()

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise self._no_offsets()

    def check_offset_delete(self) -> None:
        raise self._no_offsets()

    def _no_offsets(self) -> KafkaError:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def retained_from_ms(self, offset: Offset) -> int | None:
        return None

    def own_tombstones(self) -> list[GroupRecord]:
        return [records.state_topics_gone(self.group_id)]

    def subscriptions_with(self, before: ShareMember | None, after: ShareMember | None) -> Counter[str]:
        """Returns the number of members that subscribe to each topic after a member's change."""
        result = Counter(self.subscriptions)
        if before is not None and before.member_id in self.members:
            result.subtract(before.topic_names)
        if after is not None:
            result.update(after.topic_names)
        return +result

    def put(self, member: ShareMember) -> None:
        """Adds or updates a member."""
        self.subscriptions = self.subscriptions_with(self.members.get(member.member_id), member)
        self.members[member.member_id] = member

    def remove(self, member_id: str) -> None:
        """Removes a member."""
        self.subscriptions = self.subscriptions_with(self.members[member_id], None)
        del self.members[member_id]
