"""The content of a classic group's record: the last generation whose assignments were written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator.group.records import NO_TIMESTAMP
from protocol.coordinator_records.classic_group import GroupMetadataValue, MemberMetadata


class StoredMember(NamedTuple):
    """A member with its subscription for the generation's strategy, and its assignment."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class StoredGroup(NamedTuple):
    """A generation with its members, by member id."""

    protocol_type: str | None = None
    generation: int = 0
    strategy: str | None = None
    leader: str | None = None
    since_ms: int = NO_TIMESTAMP
    """The time when the group's state began."""
    members: Mapping[str, StoredMember] = {}


NOTHING_STORED: Final = StoredGroup()
"""A group that only has offsets, and no record of its own."""


def from_record(value: GroupMetadataValue) -> StoredGroup:
    """Returns the group that a record describes."""
    return StoredGroup(
        protocol_type=value.protocol_type or None,
        generation=value.generation,
        strategy=value.protocol,
        leader=value.leader,
        since_ms=value.current_state_timestamp,
        members={member.member_id: _member(member) for member in value.members},
    )


def _member(value: MemberMetadata) -> StoredMember:
    """Returns a member of a record. Records from before Kafka 0.10.1 have no rebalance timeout: then it equals the
    session timeout."""
    return StoredMember(
        member_id=value.member_id,
        instance_id=value.group_instance_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.session_timeout if value.rebalance_timeout == -1 else value.rebalance_timeout,
        session_timeout_ms=value.session_timeout,
        subscription=value.subscription,
        assignment=value.assignment,
    )
