"""What the records of classic groups do to a shard as they are applied, and as it begins to serve."""

from __future__ import annotations

from coordinator.group.classic.group import EMPTY, STABLE, ClassicGroup
from coordinator.group.classic.member import ClassicMember, Strategy
from coordinator.group.classic.rebalance import keep_session, prepare
from coordinator.group.draft import Draft
from coordinator.group.records import GroupRecord
from coordinator.group.state import Apply, GroupState
from protocol.coordinator_records.classic_group import GroupMetadataKey, GroupMetadataValue, MemberMetadata


def group_metadata(state: GroupState, record: GroupRecord) -> None:
    """A group is as the record says: a new one, or one that has lived through another rebalance."""
    key, value = record.key, record.value
    assert isinstance(key, GroupMetadataKey)
    if value is None:
        remove(state, key.group)
        return
    assert isinstance(value, GroupMetadataValue)
    group = state.groups.get(key.group)
    if not isinstance(group, ClassicGroup):
        group = state.groups[key.group] = ClassicGroup(key.group)
    if value.members or not group.members:
        # A record without members that finds some was written as these made the group: it only says that it is there.
        take(group, value)


def remove(state: GroupState, group_id: str) -> None:
    """The group is gone, or has become one of another type, whose records say so."""
    group = state.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        group.cancel_timers(state.timers)
        del state.groups[group_id]


def take(group: ClassicGroup, value: GroupMetadataValue) -> None:
    """Have the group be what the record says; who is a member already keeps what only it has told."""
    group.protocol = value.protocol_type or None
    group.strategy = value.protocol
    group.generation = value.generation
    group.state = STABLE if value.members else EMPTY
    group.since_ms = value.current_state_timestamp
    for gone in group.members.keys() - {each.member_id for each in value.members}:
        group.remove(gone)
    for each in value.members:
        known = group.members.get(each.member_id)
        if known is None:
            group.add(loaded_member(each, value.protocol), value.protocol_type)
        else:
            _refresh(group, known, each)
    group.leader = value.leader
    group.read_subscriptions()


def _refresh(group: ClassicGroup, member: ClassicMember, each: MemberMetadata) -> None:
    """A later record of the same member. One that this broker has just written says what the member is; of one that is
    loaded, the member may have changed since the record before: its subscription, or all its strategies."""
    loaded = loaded_member(each, group.strategy)
    member.assignment = loaded.assignment
    if loaded.strategies[0] not in member.strategies:
        group.change_strategies(member, loaded.strategies)
        member.rebalance_timeout_ms = loaded.rebalance_timeout_ms
        member.session_timeout_ms = loaded.session_timeout_ms


def loaded_member(each: MemberMetadata, strategy: str | None) -> ClassicMember:
    """A member of a record, which has only what the chosen strategy needs."""
    return ClassicMember(
        each.member_id,
        instance_id=each.group_instance_id,
        client_id=each.client_id,
        client_host=each.client_host,
        rebalance_timeout_ms=each.session_timeout if each.rebalance_timeout == -1 else each.rebalance_timeout,
        session_timeout_ms=each.session_timeout,
        strategies=(Strategy(strategy or "", each.subscription),),
        assignment=each.assignment,
    )


def activate(state: GroupState, now_ms: int) -> None:
    """The groups are loaded: their members have to give signs of life again."""
    max_size = state.settings.group_max_size
    for group in list(state.groups.values()):
        if not isinstance(group, ClassicGroup):
            continue
        for member in group.members.values():
            keep_session(state, group, member, now_ms)
        if len(group.members) > max_size:
            # There is no reply to give, nor a record: nobody has joined yet, and the rebalance timeout has to pass.
            reason = f"{len(group.members)} members are more than group.max.size {max_size} allows"
            prepare(state, group, Draft(), now_ms, reason)


APPLY: dict[type, Apply] = {GroupMetadataKey: group_metadata}
