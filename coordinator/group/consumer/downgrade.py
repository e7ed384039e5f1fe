"""Converts a consumer group whose members all use the classic protocol to a classic group, while they run.

The group's epoch becomes the generation, the target assignment the assignment. Source: GroupMetadataManager's
convertToClassicGroup, ClassicGroup.fromConsumerGroup (KIP-848, "online downgrade").
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from coordinator.group.assignment import Assignment
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.member import ClassicMember, Strategy
from coordinator.group.classic.rebalance import rebalance, watch
from coordinator.group.classic.records import as_is
from coordinator.group.classic.rendezvous import STABLE, Rendezvous
from coordinator.group.consumer.embedded import assignment_bytes
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupState, TopicLookup
from protocol.consumer_protocol import PROTOCOL_TYPE

DOWNGRADE_POLICIES: Final = frozenset({"downgrade", "bidirectional"})


def can_downgrade_without(
    state: GroupState, group: ConsumerGroup, leaving: Collection[Member], result: GroupResult
) -> bool:
    """True if members remain after these leave, all of them use the classic protocol, and the migration policy and size
    limit allow a classic group."""
    stay = len(group.members) - len(leaving)
    classic = group.classic_members - sum(member.uses_classic_protocol for member in leaving)
    return stay > 0 and classic == stay and _is_allowed(state, group, stay, result)


def can_downgrade_with(state: GroupState, group: ConsumerGroup, replaced: Member, result: GroupResult) -> bool:
    """True if this is the last member of the consumer protocol, so that its replacement by a classic member makes the
    group classic."""
    others = len(group.members) - 1
    all_others = group.classic_members == others and not replaced.uses_classic_protocol
    return all_others and _is_allowed(state, group, len(group.members), result)


def _is_allowed(state: GroupState, group: ConsumerGroup, size: int, result: GroupResult) -> bool:
    settings = state.settings
    allowed = settings.group_consumer_migration_policy.lower() in DOWNGRADE_POLICIES and size <= settings.group_max_size
    if not allowed:
        result.effect(state.note, "stays a consumer group", group=group.group_id, members=size)
    return allowed


def downgrade(
    state: GroupState,
    group: ConsumerGroup,
    result: GroupResult,
    now_ms: int,
    *,
    leaving: Collection[Member] = (),
    joining: Member | None = None,
    reason: str | None = None,
) -> None:
    """Writes the group's tombstones, and the classic group that it becomes. `joining` replaces the static member with
    its instance id. With a reason, the classic group rebalances at once.

    Until that rebalance is over the record has no leader: a broker that loads the group meanwhile sees that partitions
    of members that left are still unassigned.
    """
    replaced = group.static_member(joining.instance_id) if joining is not None else None
    names = {replaced.member_id: joining.member_id} if replaced is not None and joining is not None else {}
    result.records += group.tombstones_of(names.get(member_id, member_id) for member_id in group.members)
    gone = {member.member_id for member in leaving} | names.keys()
    members = [member for member in group.members.values() if member.member_id not in gone]
    targets = {member.member_id: group.target(member.member_id) for member in members}
    if joining is not None and replaced is not None:
        members.append(joining)
        targets[joining.member_id] = group.target(replaced.member_id)
    classic = _classic_group(group, members, targets, state.environment.topics, now_ms)
    if reason is not None:
        classic.leader = None
    result.records.append(as_is(classic))
    result.effect(state.note, "became a classic group", group=group.group_id, generation=classic.generation)
    strategies = {member.member_id: member.strategies for member in classic.members.values()}
    result.effect(_take_over, state, group.group_id, strategies, reason, now_ms)


def _classic_group(
    group: ConsumerGroup, members: Collection[Member], targets: dict[str, Assignment], topics: TopicLookup, now_ms: int
) -> Rendezvous:
    classic = Rendezvous(group.group_id, STABLE, now_ms)
    classic.generation = group.epoch
    for member in members:
        classic.add(_classic_member(member), PROTOCOL_TYPE)
    classic.strategy = strategy = classic.select_strategy()
    for classic_member in classic.members.values():
        classic_member.assignment = assignment_bytes(
            targets[classic_member.member_id], classic_member.metadata(strategy), topics
        )
    return classic


def _classic_member(member: Member) -> ClassicMember:
    return ClassicMember(
        member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic_session_timeout_ms or 0,
        strategies=tuple(Strategy(protocol.name, bytes(protocol.metadata)) for protocol in member.classic_protocols),
    )


def _take_over(
    state: GroupState, group_id: str, strategies: dict[str, tuple[Strategy, ...]], reason: str | None, now_ms: int
) -> None:
    """Completes the conversion: the classic group's members get sessions, and all their strategies, because the record
    has only the chosen one; an effect."""
    group = state.group_of(group_id, ClassicGroup)
    group.restore(group.stored)
    for member in group.members.values():
        group.change_strategies(member, strategies[member.member_id])
        watch(state, group_id, member.member_id, now_ms + member.session_timeout_ms)
    group.leader = group.leader or next(iter(group.members), None)
    if reason is not None:
        rebalance(state, group, now_ms, reason)
