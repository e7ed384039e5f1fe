"""The replay of the records of streams groups.

Source: the replay methods of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from coordinator.group.modern.replay import MemberChanges, fact, put_epoch, remove_group, shared_table
from coordinator.group.state import Apply, GroupState
from coordinator.group.streams.group import StreamsGroup
from coordinator.group.streams.member import StreamsMember
from coordinator.group.streams.records import CLASSES, description_of, target_from_record
from coordinator.group.streams.topology import Topology
from protocol.coordinator_records.streams_group import (
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)


def _put_description(group: StreamsGroup, key: object, value: StreamsGroupMetadataValue) -> None:
    put_epoch(group, key, value)
    group.description = description_of(value)


def _put_topology(group: StreamsGroup, key: object, value: StreamsGroupTopologyValue) -> None:
    group.put_topology(Topology.from_record(value))


def _remove_topology(state: GroupState, group: StreamsGroup, key: object) -> None:
    group.put_topology(None)


APPLY: dict[type, Apply] = {
    **shared_table(
        StreamsGroup,
        CLASSES,
        MemberChanges(
            StreamsMember,
            StreamsMember.described_by,
            StreamsMember.moved_by,
            StreamsMember.unassigned,
            target_from_record,
        ),
    ),
    StreamsGroupMetadataKey: fact(StreamsGroup, _put_description, remove_group),
    StreamsGroupTopologyKey: fact(StreamsGroup, _put_topology, _remove_topology),
}
"""The replay functions, by the class of a record's key."""
