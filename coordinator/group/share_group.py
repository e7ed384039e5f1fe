"""A share group: its epochs, members and target assignment, as its records tell them.

Only share_replay changes it, record by record. Source: Kafka's ModernGroup and ShareGroup (KIP-932).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from coordinator.group import share_records as records
from coordinator.group.assignment import NOTHING, Assignment
from coordinator.group.group import CommitCheck, GroupType
from coordinator.group.offsets import Offset
from coordinator.group.records import GroupRecord
from coordinator.group.share_member import ShareMember
from coordinator.group.share_topics import NO_STATE
from coordinator.group.timers import Timers
from protocol.errors import ErrorCode, KafkaError

PROTOCOL_TYPE: Final = "share"

FIRST_EPOCH: Final = 1
"""Of a group and of its target assignment before anyone has joined."""

EMPTY: Final = "Empty"
STABLE: Final = "Stable"


class Checked:
    """When a group last looked at its topics, as ConsumerGroup has it."""

    __slots__ = ("changes", "group_epoch")

    def __init__(self) -> None:
        self.changes = -1
        self.group_epoch = 0


class ShareGroup:
    """`coordinator.group.group.Group` of members that share partitions."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_at_ms = 0
        """When the target assignment was made; 0 if it never was."""
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.subscriptions: Counter[str] = Counter()
        """How many members subscribe to a topic."""
        self.topics = NO_STATE
        """Which partitions have durable state."""
        self.checked = Checked()
        """Of the moment: no record has it."""

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
    def is_empty(self) -> bool:
        return not self.members

    @property
    def expires(self) -> bool:
        return False

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

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

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def retained_from_ms(self, offset: Offset) -> int | None:
        return None

    def tombstones(self) -> list[GroupRecord]:
        return [
            *(records.current_gone(self.group_id, member_id) for member_id in self.members),
            *(records.target_gone(self.group_id, member_id) for member_id in self.members),
            records.target_epoch_gone(self.group_id),
            *(records.member_gone(self.group_id, member_id) for member_id in self.members),
            records.state_topics_gone(self.group_id),
            records.epoch_gone(self.group_id),
        ]

    def cancel_timers(self, timers: Timers) -> None:
        for member_id in self.members:
            timers.cancel(session_key(self.group_id, member_id))

    def member(self, member_id: str) -> ShareMember:
        """The member; raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NOTHING)

    def subscriptions_with(self, before: ShareMember | None, after: ShareMember | None) -> Counter[str]:
        """What members subscribe to once one of them has changed."""
        result = Counter(self.subscriptions)
        if before is not None and before.member_id in self.members:
            result.subtract(before.topic_names)
        if after is not None:
            result.update(after.topic_names)
        return +result

    def put(self, member: ShareMember) -> None:
        """A member joined or changed."""
        self.subscriptions = self.subscriptions_with(self.members.get(member.member_id), member)
        self.members[member.member_id] = member

    def remove(self, member_id: str) -> None:
        """A member is gone."""
        self.subscriptions = self.subscriptions_with(self.members[member_id], None)
        del self.members[member_id]


def session_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    """What a member's session timer is set under."""
    return "share session", group_id, member_id
