"""Translates the consumers' bytes in messages of the classic protocol to the consumer protocol's terms and back.

Assignments and subscriptions have topic names there and topic ids here; topics that don't exist are left out. Source:
Kafka's ConsumerProtocol, and the group coordinator's Utils.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from coordinator.group.assignment import Assignment
from coordinator.group.state import TopicLookup
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read,
    version_of,
    write,
)
from protocol.errors import ProtocolError
from protocol.types import Buffer, Uuid

OLDEST: Final = 0


def assignment_bytes(partitions: Mapping[Uuid, Iterable[int]], metadata: Buffer, topics: TopicLookup) -> bytes:
    """Returns an encoded assignment for a member, in the version of its `metadata` for one of its strategies; in the
    oldest version, which all clients can read, if that metadata has no version."""
    assigned = []
    for topic_id, indexes in partitions.items():
        topic = topics.topic_by_id(topic_id)
        if topic is not None:
            assigned.append(TopicPartition(topic=topic.name, partitions=sorted(indexes)))
    return write(ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=None), _version_for(metadata))


def _version_for(metadata: Buffer) -> int:
    try:
        return version_of(metadata)
    except ProtocolError:
        return OLDEST


def assignment_of(data: Buffer, topics: TopicLookup) -> tuple[Assignment, bool]:
    """Returns the assignment in `data`, and True if the client's own assignor has added user data. Raises ProtocolError
    if the bytes are not an assignment."""
    if not data:
        return {}, False
    assignment = read(ConsumerProtocolAssignment, data)
    return _by_id(assignment.assigned_partitions, topics), bool(assignment.user_data)


def subscription_of(data: Buffer) -> ConsumerProtocolSubscription:
    """Returns the subscription of a JoinGroup. Raises ProtocolError if the bytes are not a subscription."""
    return read(ConsumerProtocolSubscription, data)


def owned_by(subscription: ConsumerProtocolSubscription, topics: TopicLookup) -> Assignment:
    """Returns the partitions that a member claims to own in its subscription."""
    return _by_id(subscription.owned_partitions, topics)


def _by_id(named: Iterable[TopicPartition], topics: TopicLookup) -> Assignment:
    result: dict[Uuid, frozenset[int]] = {}
    for topic_partitions in named:
        topic = topics.topic(topic_partitions.topic)
        if topic is not None:
            result[topic.topic_id] = frozenset(topic_partitions.partitions)
    return result
