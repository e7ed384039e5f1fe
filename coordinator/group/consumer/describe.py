"""ConsumerGroupDescribe: groups, and their members with their current and target assignments.

Source: GroupMetadataManager.consumerGroupDescribe (KIP-848; KIP-1099 for the type of members).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from coordinator.engine.result import Ticket, answered
from coordinator.group.assignors.builtin import configured
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member
from coordinator.group.modern.describe import existing_topics, undescribed
from coordinator.group.records import GroupResult
from coordinator.group.state import Client, GroupState, TopicLookup
from protocol.errors import KafkaError
from protocol.messages import consumer_group_describe as messages
from protocol.types import Uuid

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


def describe(
    state: GroupState, group_id: str, client: Client, ticket: Ticket[messages.DescribedGroup], now_ms: int
) -> GroupResult:
    """Describes a group, once all decisions about it are committed."""
    return answered(ticket, described(state, group_id))


def described(state: GroupState, group_id: str) -> messages.DescribedGroup:
    """Returns the description of a group; with GROUP_ID_NOT_FOUND if it doesn't exist or is of another type."""
    try:
        group = state.group_of(group_id, ConsumerGroup)
    except KafkaError as error:
        return undescribed(messages.DescribedGroup, group_id, error)
    return messages.DescribedGroup(
        error_code=0,
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or configured(state.settings.group_consumer_assignors)[0],
        members=[_member(group, member, state.environment.topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: Member, topics: TopicLookup) -> messages.Member:
    owned: dict[Uuid, list[int]] = {}
    for part in (member.assigned, member.pending_revocation):
        for topic_id, partitions in part.items():
            owned.setdefault(topic_id, []).extend(partitions)
    return messages.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(owned, topics),
        target_assignment=_assignment(group.target(member.member_id), topics),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[Uuid, Iterable[int]], topics: TopicLookup) -> messages.Assignment:
    """Returns the partitions of topics that still exist."""
    return messages.Assignment(
        topic_partitions=[
            messages.TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=indexes)
            for topic, indexes in existing_topics(partitions, topics)
        ]
    )
