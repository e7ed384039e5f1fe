"""Converts a classic group of consumers to a consumer group when its first member of the consumer protocol joins.

The generation becomes the epoch of the group and of every member, the assignment the target assignment; the members
continue with the classic protocol inside the consumer group. Source: GroupMetadataManager's
getOrMaybeCreateConsumerGroup and convertToConsumerGroup, ConsumerGroup.fromClassicGroup (KIP-848, "online upgrade").
"""

from __future__ import annotations

from typing import Final

from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.member import ClassicMember
from coordinator.group.classic.rebalance import join_refused
from coordinator.group.consumer import records
from coordinator.group.consumer.embedded import assignment_of, subscription_of
from coordinator.group.consumer.fencing import keep_session
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member, at_epoch
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupState
from protocol.coordinator_records.consumer_group import ClassicMemberMetadata, ClassicProtocol
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.messages.sync_group import SyncGroupResponse

UPGRADE_POLICIES: Final = frozenset({"upgrade", "bidirectional"})


def find_or_make(state: GroupState, group_id: str, result: GroupResult, *, joining: bool, now_ms: int) -> ConsumerGroup:
    """Returns the consumer group of a request. If the member joins, a missing group is created and a classic group
    converted; the returned group isn't in the table until the records are applied. Raises GROUP_ID_NOT_FOUND."""
    group = state.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if group is None:
        if not joining:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        return ConsumerGroup(group_id)
    if not joining or not isinstance(group, ClassicGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    if group.is_empty:
        result.records += group.tombstones()
        return ConsumerGroup(group_id)
    return _upgrade(state, group, result, now_ms)


def _answer_waiting(classic: ClassicGroup, result: GroupResult) -> None:
    """Answers requests that wait in a rebalance of the converted group, which ends with the group: their members must
    join again."""
    code = ErrorCode.REBALANCE_IN_PROGRESS
    for member in classic.members.values():
        if member.join_ticket is not None:
            result.answer(member.join_ticket, join_refused(member.member_id, code))
        if member.sync_ticket is not None:
            result.answer(member.sync_ticket, SyncGroupResponse(error_code=code, assignment=b""))


def _upgrade(state: GroupState, classic: ClassicGroup, result: GroupResult, now_ms: int) -> ConsumerGroup:
    _check_allowed(state, classic)
    result.records += classic.tombstones()
    try:
        group = _consumer_group(state, classic)
    except ProtocolError as error:
        raise _not_upgraded(state, classic, "because the embedded consumer protocol is malformed", str(error)) from None
    _write(group, result)
    _answer_waiting(classic, result)
    for member in group.members.values():
        result.effect(keep_session, state, group.group_id, member, now_ms)
    result.effect(state.note, "became a consumer group", group=group.group_id, epoch=group.epoch)
    return group


def _check_allowed(state: GroupState, classic: ClassicGroup) -> None:
    settings = state.settings
    if settings.group_consumer_migration_policy.lower() not in UPGRADE_POLICIES:
        raise _not_upgraded(state, classic, "because online upgrade is disabled")
    if not classic.is_of_consumers:
        raise _not_upgraded(state, classic, "because the group does not use the consumer embedded protocol")
    if len(classic.members) > settings.group_consumer_max_size:
        raise _not_upgraded(state, classic, "because the group size exceeds the consumer group maximum size")


def _not_upgraded(state: GroupState, classic: ClassicGroup, reason: str, detail: str = "") -> KafkaError:
    state.note("stays a classic group", group=classic.group_id, reason=reason, detail=detail)
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group {reason}."
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _consumer_group(state: GroupState, classic: ClassicGroup) -> ConsumerGroup:
    """Returns the group as its records will describe it. Raises ProtocolError if a member's bytes are malformed."""
    group = ConsumerGroup(classic.group_id)
    group.epoch = group.assignment_epoch = classic.generation
    topics = state.environment.topics
    for member in classic.members.values():
        target, has_more = assignment_of(member.assignment, topics)
        if has_more:
            raise _not_upgraded(
                state,
                classic,
                "because an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
                "default assignor before re-attempting the upgrade",
            )
        group.put_target(member.member_id, target)
        group.put(_member(member, classic)._replace(assigned=at_epoch(target, classic.generation)))
    group.metadata_hash = state.watch.group_hash(group.subscriptions.topics)
    return group


def _member(member: ClassicMember, classic: ClassicGroup) -> Member:
    """Returns a member that continues with the classic protocol. Its preferred strategy is used if there is no
    generation yet, or if it has already joined the next generation and no longer supports the present strategy."""
    names = [name for name, _ in member.strategies]
    subscription = subscription_of(member.metadata(classic.strategy if classic.strategy in names else names[0]))
    protocols = [ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.strategies]
    return Member(
        member.member_id,
        member_epoch=classic.generation,
        previous_member_epoch=classic.generation,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(subscription.topics),
        classic=ClassicMemberMetadata(session_timeout_ms=member.session_timeout_ms, supported_protocols=protocols),
    )


def _write(group: ConsumerGroup, result: GroupResult) -> None:
    members = group.members.values()
    result.records += [
        *(records.COMMON.member(group.group_id, member) for member in members),
        records.COMMON.epoch(group.group_id, group.epoch, group.metadata_hash),
        *(
            records.COMMON.target(group.group_id, member.member_id, group.target(member.member_id))
            for member in members
        ),
        records.COMMON.target_epoch(group.group_id, group.assignment_epoch, group.assigned_at_ms),
        *(records.COMMON.current(group.group_id, member) for member in members),
    ]
