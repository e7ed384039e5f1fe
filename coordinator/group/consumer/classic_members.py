"""Members of a consumer group that use the classic protocol: the meaning of their four requests.

JoinGroup is a heartbeat that may bring a new epoch, which the member sees as a generation; SyncGroup returns the
assignment; Heartbeat tells the member to join again when it must take a step towards the target. No member leads, and
none waits for the others. Source: GroupMetadataManager's classicGroup…ToConsumerGroup methods (KIP-848).
"""

from __future__ import annotations

from coordinator.engine.result import Result, Ticket
from coordinator.group.classic.rebalance import join_refused
from coordinator.group.consumer.downgrade import can_downgrade_with, downgrade
from coordinator.group.consumer.embedded import assignment_bytes, owned_by, subscription_of
from coordinator.group.consumer.fencing import fence, keep_session, stop_sync_deadline, watch_join, watch_sync
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.group_update import GroupUpdate
from coordinator.group.consumer.member import Member, MemberState, without_epochs
from coordinator.group.consumer.membership import dynamic_member, static_member
from coordinator.group.modern.requests import check_topic_names
from coordinator.group.records import GroupResult
from coordinator.group.state import Client, GroupState
from protocol.consumer_protocol import PROTOCOL_TYPE, ConsumerProtocolSubscription
from protocol.coordinator_records.consumer_group import ClassicMemberMetadata, ClassicProtocol
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.types import uuid_to_text

FIRST_VERSION_WITH_MEMBER_ID_REQUIRED = 4  # KIP-394


def join(
    state: GroupState,
    group: ConsumerGroup,
    request: JoinGroupRequest,
    client: Client,
    ticket: Ticket[JoinGroupResponse],
    now_ms: int,
) -> GroupResult:
    """Adds or updates a member. Raises KafkaError: INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED,
    UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, INVALID_REQUEST."""
    result: GroupResult = Result()
    unknown = not request.member_id
    member_id = request.member_id or uuid_to_text(state.environment.new_uuid())
    _check_join(state, group, request, member_id)
    if unknown and request.group_instance_id is None and client.version >= FIRST_VERSION_WITH_MEMBER_ID_REQUIRED:
        result.answer(ticket, join_refused(member_id, ErrorCode.MEMBER_ID_REQUIRED))
        return result
    if request.group_instance_id is None:
        before = dynamic_member(group, member_id, joining=True)
    else:
        before = static_member(group, member_id, request.group_instance_id, result, joining=unknown, classic=True)
    subscription = _subscription(request)
    update = GroupUpdate(state, group, client, result, now_ms)
    after, downgraded = _advance(update, before, _changed(before, request, client, subscription), subscription)
    if not downgraded:
        result.effect(keep_session, state, group.group_id, after, now_ms)
        result.effect(watch_sync, state, group.group_id, after, now_ms)
    result.answer(
        ticket,
        JoinGroupResponse(
            error_code=0,
            generation_id=after.member_epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=after.classic_protocols[0].name,
            leader="",
            member_id=after.member_id,
            members=[],
        ),
    )
    return result


def _check_join(state: GroupState, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> None:
    settings = state.settings
    if settings.group_consumer_migration_policy.lower() == "disabled":
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration "
            "is disabled.",
        )
    group.check_room_for(member_id, request.group_instance_id, settings.group_consumer_max_size)
    shared = any(group.classic_protocols[protocol.name] == group.classic_members for protocol in request.protocols)
    if request.protocol_type != PROTOCOL_TYPE or not shared:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        subscription = subscription_of(request.protocols[0].metadata)
    except ProtocolError:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            "Malformed embedded consumer protocol in subscription deserialization.",
        ) from None
    check_topic_names(subscription.topics)
    return subscription


def _changed(
    member: Member, request: JoinGroupRequest, client: Client, subscription: ConsumerProtocolSubscription
) -> Member:
    """Returns the member as the request describes it."""
    protocols = [
        ClassicProtocol(name=protocol.name, metadata=bytes(protocol.metadata)) for protocol in request.protocols
    ]
    timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=client.client_id,
        client_host=client.host,
        classic=ClassicMemberMetadata(session_timeout_ms=request.session_timeout_ms, supported_protocols=protocols),
    )


def _advance(
    update: GroupUpdate, before: Member, after: Member, subscription: ConsumerProtocolSubscription
) -> tuple[Member, bool]:
    """Returns the member after its join, and True if the join made the group classic, because it replaced the last
    member of the consumer protocol."""
    group, now_ms = update.group, update.now_ms
    claimed = owned_by(subscription, update.state.environment.topics)
    replaced = group.static_member(after.instance_id)
    if replaced is None or not can_downgrade_with(update.state, group, replaced, update.result):
        return update.settle(before, after, claimed), False
    changed, epoch = update.subscribe(before, after)
    stale = group.assignment_epoch < epoch
    if not stale:
        after = update.move(after, update.last_target(after), changed, claimed)
    reason = f"Downgrade group {group.group_id} from consumer to classic with stale assignment." if stale else None
    downgrade(update.state, group, update.result, now_ms, joining=after, reason=reason)
    return after, True


def sync(
    state: GroupState,
    group: ConsumerGroup,
    request: SyncGroupRequest,
    client: Client,
    ticket: Ticket[SyncGroupResponse],
    now_ms: int,
) -> GroupResult:
    """Answers a member with its assignment, or with REBALANCE_IN_PROGRESS. Raises KafkaError: UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL."""
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    preferred = member.classic_protocols[0]
    for claimed, expected in ((request.protocol_type, PROTOCOL_TYPE), (request.protocol_name, preferred.name)):
        if claimed is not None and claimed != expected:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    result: GroupResult = Result()
    if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        result.effect(watch_join, state, group.group_id, member, now_ms)
        result.answer(ticket, KafkaError(ErrorCode.REBALANCE_IN_PROGRESS))
        return result
    result.effect(stop_sync_deadline, state, group.group_id, member.member_id)
    result.effect(keep_session, state, group.group_id, member, now_ms)
    result.answer(
        ticket,
        SyncGroupResponse(
            error_code=0,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment_bytes(without_epochs(member.assigned), preferred.metadata, state.environment.topics),
        ),
    )
    return result


def heartbeat(
    state: GroupState,
    group: ConsumerGroup,
    request: HeartbeatRequest,
    client: Client,
    ticket: Ticket[HeartbeatResponse],
    now_ms: int,
) -> GroupResult:
    """Keeps a member's session, and tells the member if it should join again. Raises KafkaError: UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID, ILLEGAL_GENERATION."""
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    result: GroupResult = Result()
    result.effect(keep_session, state, group.group_id, member, now_ms)
    code = ErrorCode.NONE
    if member.member_epoch < group.assignment_epoch or _has_a_step_to_make(group, member):
        code = ErrorCode.REBALANCE_IN_PROGRESS
        result.effect(watch_join, state, group.group_id, member, now_ms)
    result.answer(ticket, HeartbeatResponse(error_code=code))
    return result


def _has_a_step_to_make(group: ConsumerGroup, member: Member) -> bool:
    """True if the member must give partitions up, or can get all partitions that it waits for."""
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return not any(
            group.is_held(topic_id, index)
            for topic_id, partitions in group.target(member.member_id).items()
            for index in partitions - member.assigned.get(topic_id, {}).keys()
        )
    return member.state is MemberState.UNREVOKED_PARTITIONS


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> Member:
    member = group.present(member_id, instance_id)
    if not member.uses_classic_protocol:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol.")
    if generation != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation} is not equal to the member epoch {member.member_epoch} of member "
            f"{member_id}.",
        )
    return member


def leave(
    state: GroupState,
    group: ConsumerGroup,
    request: LeaveGroupRequest,
    client: Client,
    ticket: Ticket[LeaveGroupResponse],
    now_ms: int,
) -> GroupResult:
    """Removes members of either protocol, as administrators do with this request, with an answer for each."""
    result: GroupResult = Result()
    leaving: dict[str, Member] = {}
    results: list[MemberResponse] = []
    for identity in request.members:
        code = ErrorCode.NONE
        try:
            member = _leaving_member(group, identity)
            leaving[member.member_id] = member
        except KafkaError as error:
            code = error.code
        results.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
        )
    fence(state, group, list(leaving.values()), result, now_ms)
    result.answer(ticket, LeaveGroupResponse(error_code=0, members=results))
    return result


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    static = group.static_member(identity.group_instance_id)
    member_id = identity.member_id or (static.member_id if static else "")  # administrators don't know it
    return group.present(member_id, identity.group_instance_id)
