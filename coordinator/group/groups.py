"""Administration of groups: ListGroups and DeleteGroups for all types of groups, DescribeGroups for classic groups.

Source: GroupMetadataManager.listGroups and describeGroups, GroupCoordinatorShard.deleteGroups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from coordinator.engine.result import Ticket, answered
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.member import ClassicMember
from coordinator.group.classic.rendezvous import DEAD, STABLE
from coordinator.group.group import Group
from coordinator.group.offsets.delete import all_offsets_gone
from coordinator.group.records import AnyRecord, GroupResult
from coordinator.group.state import Client, GroupState
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_groups import DeletableGroupResult
from protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from protocol.messages.list_groups import ListedGroup

FIRST_NOT_FOUND_VERSION = 6
"""First version of DescribeGroups that reports a missing group as an error (KIP-1043); older ones report it as Dead."""


def state_key(name: str) -> str:
    """Returns the name of a requested state as a filter has it: Kafka ignores case and spaces around it."""
    return name.lower().strip()


class GroupFilter(NamedTuple):
    """The states and types of the groups to list, in lower case; an empty set means all."""

    states: AbstractSet[str]
    types: AbstractSet[str]
    group_ids: Sequence[str]
    """The groups to list; those that don't exist are left out."""


def group_ids(state: GroupState, _: object, client: Client, ticket: Ticket[list[str]], now_ms: int) -> GroupResult:
    """Returns the ids of the shard's groups."""
    return answered(ticket, list(state.groups))


def list_groups(
    state: GroupState, wanted: GroupFilter, client: Client, ticket: Ticket[list[ListedGroup]], now_ms: int
) -> GroupResult:
    """Lists the groups that exist and have the wanted states and types."""
    states, types, names = wanted
    listed = [
        _listed(group)
        for group in map(state.groups.get, names)
        if group is not None
        and (not states or group.state_name.lower() in states)
        and (not types or group.type.value in types)
    ]
    return answered(ticket, listed)


def _listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        group_state=group.state_name,
        group_type=group.type.value,
    )


def describe_classic(
    state: GroupState, group_ids: Iterable[str], client: Client, ticket: Ticket[list[DescribedGroup]], now_ms: int
) -> GroupResult:
    """Describes classic groups by id; a group of another type isn't found, because its members' data differ."""
    described = [_describe(state, group_id, client.version) for group_id in group_ids]
    return answered(ticket, described)


def _describe(state: GroupState, group_id: str, version: int) -> DescribedGroup:
    try:
        group = state.group_of(group_id, ClassicGroup)
    except KafkaError as error:
        return _dead(group_id, error, version)
    stable = group.state is STABLE
    strategy = group.strategy or ""
    return DescribedGroup(
        error_code=0,
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=strategy if stable else "",
        members=[_member(member, strategy, stable) for member in group.members.values()],
    )


def _dead(group_id: str, error: KafkaError, version: int) -> DescribedGroup:
    knows_not_found = version >= FIRST_NOT_FOUND_VERSION
    return DescribedGroup(
        error_code=error.code if knows_not_found else 0,
        error_message=error.message if knows_not_found else None,
        group_id=group_id,
        group_state=DEAD.value,
        protocol_type="",
        protocol_data="",
        members=[],
    )


def _member(member: ClassicMember, strategy: str, stable: bool) -> DescribedGroupMember:
    """Describes a member. Its metadata, which is for the generation's strategy, is shown while the group is stable."""
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(strategy) if stable else b"",
        member_assignment=member.assignment,
    )


def delete_groups(
    state: GroupState, group_ids: Sequence[str], client: Client, ticket: Ticket[list[DeletableGroupResult]], now_ms: int
) -> GroupResult:
    """Deletes groups without members, and their offsets, with an answer for each. As in Kafka, only
    GROUP_DELETION_FAILED would have a message.
    """
    records: list[AnyRecord] = []
    results = []
    for group_id in group_ids:
        code = ErrorCode.NONE
        try:
            group = state.group(group_id)
            group.check_delete()
            records += all_offsets_gone(state, group_id)
            records += group.tombstones()
        except KafkaError as error:
            code = error.code
        results.append(DeletableGroupResult(group_id=group_id, error_code=code))
    return answered(ticket, results, records)
