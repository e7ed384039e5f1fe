"""The interface of a group that is the same in every protocol.

Source: org.apache.kafka.coordinator.group.Group.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from coordinator.group.records import GroupRecord
from protocol.types import Uuid

if TYPE_CHECKING:
    from coordinator.group.offsets.offsets import Offset
    from coordinator.group.timers import Timers


class GroupType(Enum):
    """The protocol of a group's members, as spelled in ListGroups and group.coordinator.rebalance.protocols."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


CommitCheck = Callable[[str, Uuid, int], None]
"""(topic, topic id, partition): raises KafkaError if the member may not commit this partition's offset (KIP-1251)."""


def any_partition(_topic: str, _topic_id: Uuid, _partition: int) -> None:
    """Raises nothing: the CommitCheck of a client that may commit any partition."""


class Group(Protocol):
    """A group in a shard's table. The `check_` methods raise the KafkaError that the client gets."""

    group_id: str

    @property
    def type(self) -> GroupType: ...

    @property
    def protocol_type(self) -> str:
        """The protocol type in ListGroups: "consumer", "connect", "share" …; empty for a group that only has
        offsets."""
        ...

    @property
    def state_name(self) -> str:
        """The state as Kafka prints it: "Stable", "PreparingRebalance" …"""
        ...

    @property
    def is_empty(self) -> bool:
        """True if it has no members."""
        ...

    @property
    def member_count(self) -> int:
        """The number of members, without pending members."""
        ...

    def has_member(self, member_id: str) -> bool: ...

    def is_subscribed_to(self, topic: str) -> bool:
        """True if a member reads the topic, or may read it: then its offsets are kept."""
        ...

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, version: int, *, transactional: bool
    ) -> CommitCheck:
        """Checks that the client is a member at the group's present generation or epoch; returns the check of each
        partition."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None:
        """Raises NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND if the group may not be deleted."""
        ...

    @property
    def expires(self) -> bool:
        """True if it is deleted once it has no members and no offsets."""
        ...

    def retained_from_ms(self, offset: Offset) -> int | None:
        """Returns the time from which an offset's retention is counted; None if it is kept at any age."""
        ...

    def tombstones(self) -> list[GroupRecord]:
        """Returns the records that delete the group, without its offsets."""
        ...

    def cancel_timers(self, timers: Timers) -> None:
        """Cancels the timers of a group that is deleted or converted."""
        ...
