"""Makes the record of a classic group."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.group.classic.rendezvous import Rendezvous
from coordinator.group.records import GroupRecord, classic_group
from protocol.coordinator_records.classic_group import GroupMetadataValue, MemberMetadata


def assigned(group: Rendezvous, assignments: Mapping[str, bytes]) -> GroupRecord:
    """Returns the record of the present generation with its members and their assignments, by member id. A member that
    is not in `assignments` gets an empty assignment."""
    strategy = group.strategy or ""
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(strategy),
            assignment=assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    ]
    return _record(group, group.generation, group.since_ms, members)


def as_is(group: Rendezvous) -> GroupRecord:
    """Returns the record of the group with its members' present assignments."""
    return assigned(group, {member.member_id: member.assignment for member in group.members.values()})


def empty_generation(group: Rendezvous, now_ms: int) -> GroupRecord:
    """Returns the record of the generation that begins when the last member has left."""
    return classic_group(
        group.group_id,
        GroupMetadataValue(
            protocol_type=group.protocol_type,
            generation=group.generation + 1,
            protocol=None,
            leader=None,
            current_state_timestamp=now_ms,
            members=[],
        ),
    )


def created(group_id: str, now_ms: int) -> GroupRecord:
    """Returns the record of a new group, whose first members are about to join."""
    return classic_group(
        group_id,
        GroupMetadataValue(
            protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=now_ms, members=[]
        ),
    )


def _record(group: Rendezvous, generation: int, since_ms: int, members: list[MemberMetadata]) -> GroupRecord:
    return classic_group(
        group.group_id,
        GroupMetadataValue(
            protocol_type=group.protocol_type,
            generation=generation,
            protocol=group.strategy,
            leader=group.leader,
            current_state_timestamp=since_ms,
            members=members,
        ),
    )
