"""The target assignment, computed again for a group epoch.

Source: Kafka's TargetAssignmentBuilder (KIP-848).
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.group.assignment import NOTHING, Assignment, Assignor, GroupSpec, MemberSpec
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member
from coordinator.group.modern.topic_ids import TopicIds
from coordinator.group.subscription_metadata import TopicTable


def assign(
    group: ConsumerGroup, changed: Member, alike: bool, assignor: Assignor, topics: TopicTable
) -> Mapping[str, Assignment]:
    """Returns every member's new target after `changed` joined or changed, or replaced a static member."""
    members, replaced = group.members_with(changed)
    heirs = {changed.member_id: replaced} if replaced is not None else {}
    ids = TopicIds(topics)
    specs = {
        member_id: MemberSpec(
            topics=ids.of(group.topics_of(member)),
            assigned=group.target(heirs.get(member_id, member_id)),
            instance_id=member.instance_id,
            rack_id=member.rack_id,
        )
        for member_id, member in members.items()
    }
    assigned = assignor(GroupSpec(specs, ids.partition_counts, alike, group.owners))
    return {member_id: assigned.get(member_id, NOTHING) for member_id in specs}
