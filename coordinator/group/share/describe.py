"""ShareGroupDescribe: groups, and their members with their assignments.

Source: GroupMetadataManager.shareGroupDescribe (KIP-932).
"""

from __future__ import annotations

from coordinator.engine.result import Ticket, answered
from coordinator.group.assignors.simple import NAME
from coordinator.group.modern.describe import existing_topics, undescribed
from coordinator.group.records import GroupResult
from coordinator.group.share.group import ShareGroup
from coordinator.group.share.member import ShareMember
from coordinator.group.state import Client, GroupState, TopicLookup
from protocol.errors import KafkaError
from protocol.messages import share_group_describe as messages


def describe(
    state: GroupState, group_id: str, client: Client, ticket: Ticket[messages.DescribedGroup], now_ms: int
) -> GroupResult:
    """Describes a group, once all decisions about it are committed."""
    return answered(ticket, described(state, group_id))


def described(state: GroupState, group_id: str) -> messages.DescribedGroup:
    """Returns the description of a group; with GROUP_ID_NOT_FOUND if it doesn't exist or is of another type."""
    try:
        group = state.group_of(group_id, ShareGroup)
    except KafkaError as error:
        return undescribed(messages.DescribedGroup, group_id, error)
    return messages.DescribedGroup(
        error_code=0,
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=NAME,
        members=[_member(member, state.environment.topics) for member in group.members.values()],
    )


def _member(member: ShareMember, topics: TopicLookup) -> messages.Member:
    return messages.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        assignment=messages.Assignment(
            topic_partitions=[
                messages.TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=indexes)
                for topic, indexes in existing_topics(member.assigned, topics)
            ]
        ),
    )
