"""Finds the member of a consumer group that joins or sends a heartbeat: present, new, or a static member's replacement.

Source: GroupMetadataManager's getOrMaybeSubscribe… and throwIf… methods (KIP-848, KIP-345).
"""

from __future__ import annotations

from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member, Owned
from coordinator.group.consumer.reconciliation import Claimed
from coordinator.group.modern import static_members
from coordinator.group.modern.static_members import has_left_for_a_while
from coordinator.group.records import GroupResult


def dynamic_member(group: ConsumerGroup, member_id: str, *, joining: bool) -> Member:
    """Returns the member, or a new member if it joins; raises UNKNOWN_MEMBER_ID."""
    return static_members.dynamic_member(group, member_id, Member, joining=joining)


def static_member(
    group: ConsumerGroup, member_id: str, instance_id: str, result: GroupResult, *, joining: bool, classic: bool
) -> Member:
    """Returns the member with the instance id. A joining member replaces the present owner of the id: in the consumer
    protocol, only if the owner has left temporarily. Raises UNRELEASED_INSTANCE_ID, UNKNOWN_MEMBER_ID and
    FENCED_INSTANCE_ID."""

    def may_replace(present: Member) -> bool:
        return classic or present.uses_classic_protocol or has_left_for_a_while(present)

    return static_members.static_member(group, member_id, instance_id, result, Member, may_replace, joining=joining)


def check_epoch(group: ConsumerGroup, member: Member, epoch: int, claimed: Claimed) -> None:
    """Raises FENCED_MEMBER_EPOCH unless the member has its present epoch; or its previous epoch, because it missed an
    answer, and owns no partition beyond its assignment."""
    group.check_epoch(member, epoch, may_be_previous=_is_within(claimed, member.assigned))


def _is_within(claimed: Claimed, owned: Owned) -> bool:
    return claimed is not None and all(
        topic_id in owned and all(index in owned[topic_id] for index in partitions)
        for topic_id, partitions in claimed.items()
    )
