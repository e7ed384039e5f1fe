"""Finds the member of a consumer group that joins or sends a heartbeat: present, new, or a static member's replacement.

Source: GroupMetadataManager's getOrMaybeSubscribe… and throwIf… methods (KIP-848, KIP-345).
"""

from __future__ import annotations

from coordinator.group.consumer import records
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import LEAVING_FOR_A_WHILE, Member, Owned
from coordinator.group.consumer.reconciliation import Claimed
from coordinator.group.modern.group import JOINING
from coordinator.group.records import GroupResult
from protocol.errors import ErrorCode, KafkaError


def dynamic_member(group: ConsumerGroup, member_id: str, *, joining: bool) -> Member:
    """Returns the member, or a new member if it joins; raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(member_id)
    return Member(member_id) if member is None and joining else group.member(member_id)


def static_member(
    group: ConsumerGroup, member_id: str, instance_id: str, result: GroupResult, *, joining: bool, classic: bool
) -> Member:
    """Returns the member with the instance id. A joining member replaces the present owner of the id: in the consumer
    protocol, only if the owner has left temporarily. Raises UNRELEASED_INSTANCE_ID, UNKNOWN_MEMBER_ID and
    FENCED_INSTANCE_ID."""
    present = group.static_member(instance_id)
    if not joining:
        return check_instance(present, member_id, instance_id)
    if present is None:
        return dynamic_member(group, member_id, joining=True)
    if not classic and not present.uses_classic_protocol and present.member_epoch != LEAVING_FOR_A_WHILE:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {present.member_id} member.",
        )
    successor = present._replace(member_id=member_id, member_epoch=JOINING, previous_member_epoch=JOINING)
    result.records += [
        *records.COMMON.all_of_member_gone(group.group_id, present.member_id),
        records.COMMON.member(group.group_id, successor),
        records.COMMON.target(group.group_id, member_id, group.target(present.member_id)),
        records.COMMON.current(group.group_id, successor),
    ]
    return successor


def check_instance(present: Member | None, member_id: str, instance_id: str) -> Member:
    """Returns the static member, if it still has this member id."""
    if present is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if present.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {present.member_id}.",
        )
    return present


def check_epoch(group: ConsumerGroup, member: Member, epoch: int, claimed: Claimed) -> None:
    """Raises FENCED_MEMBER_EPOCH unless the member has its present epoch; or its previous epoch, because it missed an
    answer, and owns no partition beyond its assignment."""
    group.check_epoch(member, epoch, may_be_previous=_is_within(claimed, member.assigned))


def _is_within(claimed: Claimed, owned: Owned) -> bool:
    return claimed is not None and all(
        topic_id in owned and all(index in owned[topic_id] for index in partitions)
        for topic_id, partitions in claimed.items()
    )
