"""Reconciliation: one step of a member from its partitions to its target assignment.

A member first gives up partitions, then moves to the target's epoch, then gets partitions that others have given up:

    STABLE                 the target is newer, or its subscription changed       → a step towards the target
    UNREVOKED_PARTITIONS   it still owns partitions that it must give up          → stays, until it confirms
    UNRELEASED_PARTITIONS  each heartbeat                                         → gets partitions that are free now
    UNKNOWN                it owns nothing                                        → starts over; otherwise it is fenced

Source: Kafka's CurrentAssignmentBuilder (KIP-848).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from coordinator.group.assignment import Assignment
from coordinator.group.consumer.member import NO_PARTITIONS, Member, MemberState, Owned
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid

Claimed = Mapping[Uuid, Collection[int]] | None
"""The partitions that a member says it owns; None if its heartbeat doesn't say, because nothing changed."""


class Step(NamedTuple):
    """The inputs of a step, besides the member itself."""

    target_epoch: int
    target: Assignment
    topics: Collection[Uuid]
    """The existing topics that the member subscribes to."""
    subscription_changed: bool
    claimed: Claimed
    is_owned: Callable[[Uuid, int], bool]
    """Returns True if any member owns a partition, or has not yet given it up."""


def reconcile(member: Member, step: Step) -> Member:
    """Returns the member after the step; the same member if there is nothing to do. Raises FENCED_MEMBER_EPOCH for a
    member in an unknown state that owns partitions."""
    return _STEPS[member.state](member, step)


def _stable(member: Member, step: Step) -> Member:
    if member.member_epoch != step.target_epoch:
        return _advance(member, member.member_epoch, step)
    return _drop_unsubscribed(member, step) if step.subscription_changed else member


def _unrevoked(member: Member, step: Step) -> Member:
    if _claims(step.claimed, member.pending_revocation):
        return _drop_unsubscribed(member, step) if step.subscription_changed else member
    return _advance(member, member.member_epoch, step)


def _unreleased(member: Member, step: Step) -> Member:
    return _advance(member, member.member_epoch, step)


def _unknown(member: Member, step: Step) -> Member:
    if step.claimed is None or step.claimed:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
        )
    return _advance(member, step.target_epoch, step)


_STEPS: Mapping[MemberState, Callable[[Member, Step], Member]] = {
    MemberState.STABLE: _stable,
    MemberState.UNREVOKED_PARTITIONS: _unrevoked,
    MemberState.UNRELEASED_PARTITIONS: _unreleased,
    MemberState.UNKNOWN: _unknown,
}


def _claims(claimed: Claimed, revoked: Owned) -> bool:
    """True if the member still owns some of `revoked`, or doesn't say."""
    if claimed is None:
        return True
    return any(index in revoked.get(topic_id, {}) for topic_id, partitions in claimed.items() for index in partitions)


def _drop_unsubscribed(member: Member, step: Step) -> Member:
    """Revokes topics that the member no longer subscribes to at once, before there is a target without them."""
    dropped = {topic_id: partitions for topic_id, partitions in member.assigned.items() if topic_id not in step.topics}
    if not dropped:
        return member
    retained = {topic_id: partitions for topic_id, partitions in member.assigned.items() if topic_id not in dropped}
    pending = dict(member.pending_revocation)
    for topic_id, partitions in dropped.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **partitions}
    moved = member.at(member.member_epoch)._replace(assigned=retained)
    if not _claims(step.claimed, pending):
        return moved
    return moved._replace(state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=pending)


class _Difference(NamedTuple):
    """The partitions to keep, revoke and add; `waits` is True if some partitions to add aren't free."""

    retained: dict[Uuid, Mapping[int, int]]
    revoked: dict[Uuid, Mapping[int, int]]
    added: dict[Uuid, list[int]]
    waits: bool


def _advance(member: Member, member_epoch: int, step: Step) -> Member:
    """Moves the member towards the target, up to the first partitions that the member must give up itself."""
    difference = _compare(member, step)
    if difference.revoked and _claims(step.claimed, difference.revoked):
        return member.at(member_epoch)._replace(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=difference.retained, pending_revocation=difference.revoked
        )
    assigned = dict(difference.retained)
    for topic_id, partitions in difference.added.items():
        assigned[topic_id] = {**assigned.get(topic_id, {}), **dict.fromkeys(partitions, step.target_epoch)}
    return member.at(step.target_epoch)._replace(
        state=MemberState.UNRELEASED_PARTITIONS if difference.waits else MemberState.STABLE,
        assigned=assigned,
        pending_revocation=NO_PARTITIONS,
    )


def _compare(member: Member, step: Step) -> _Difference:
    difference = _Difference({}, {}, {}, False)
    for topic_id in {**step.target, **member.assigned}:
        target = step.target.get(topic_id, frozenset()) if topic_id in step.topics else frozenset()
        owned = member.assigned.get(topic_id, {})
        retained = {index: epoch for index, epoch in owned.items() if index in target}
        revoked = {index: epoch for index, epoch in owned.items() if index not in target}
        missing = sorted(target - retained.keys())
        own_leftovers = member.pending_revocation.get(topic_id, {})
        added = [index for index in missing if index in own_leftovers or not step.is_owned(topic_id, index)]
        if len(added) < len(missing):
            difference = difference._replace(waits=True)
        for part, partitions in ((difference.retained, retained), (difference.revoked, revoked)):
            if partitions:
                part[topic_id] = partitions
        if added:
            difference.added[topic_id] = added
    return difference
