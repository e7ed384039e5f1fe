"""The part of a group that is the same in every protocol.

Source: org.apache.kafka.coordinator.group.Group.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from coordinator.group.records import GroupRecord
from protocol.types import Uuid

if TYPE_CHECKING:
    from coordinator.group.offsets.offsets import Offset
    from coordinator.group.timers import Timers


class GroupType(Enum):
    """The protocol of a group's members, as ListGroups and group.coordinator.rebalance.protocols spell it."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


CommitCheck = Callable[[str, Uuid, int], None]
"""(topic, topic id, partition): raises KafkaError if the member may not commit this partition's offset (KIP-1251)."""


def any_partition(_topic: str, _topic_id: Uuid, _partition: int) -> None:
    """The CommitCheck of who may commit anything."""


class Group(Protocol):
    """One group in a shard's table. The `check_` methods raise the KafkaError that the client gets."""

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
        """As Kafka prints it: "Stable", "PreparingRebalance" …"""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        ...

    @property
    def member_count(self) -> int:
        """How many members it has, without those that are about to join."""
        ...

    def has_member(self, member_id: str) -> bool: ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic, so that its offsets are kept; if in doubt, it is."""
        ...

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, version: int, *, transactional: bool
    ) -> CommitCheck:
        """Who commits is a member, at the group's present generation or epoch; what is left to check, for each
        partition."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None:
        """The group may go: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        ...

    @property
    def expires(self) -> bool:
        """Whether it goes by itself once it has no members and no offsets."""
        ...

    def retained_from_ms(self, offset: Offset) -> int | None:
        """Since when the retention of an offset runs, None while it is kept whatever its age."""
        ...

    def tombstones(self) -> list[GroupRecord]:
        """The records that delete the group, without its offsets."""
        ...

    def tickets(self) -> Iterable[Hashable]:
        """Of members that wait for an answer."""
        ...

    def cancel_timers(self, timers: Timers) -> None:
        """The group is deleted or converted: its deadlines go."""
        ...
