"""The state of a group's share partitions: initializing, initialized, or being deleted.

Only partitions with initialized state are assigned. Source: ShareGroupStatePartitionMetadataInfo and the methods around
it in GroupMetadataManager (KIP-932).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from protocol.coordinator_records.share_group import ShareGroupStatePartitionMetadataValue, TopicPartitionsInfo
from protocol.types import Uuid

Partitions = Mapping[Uuid, frozenset[int]]


class InitTopic(NamedTuple):
    """A topic's name, and some of its partitions."""

    name: str
    partitions: frozenset[int]


class StateTopics(NamedTuple):
    """The topics of a group by the progress of their state, as in the group's record."""

    initializing: Mapping[Uuid, InitTopic] = {}
    initialized: Mapping[Uuid, InitTopic] = {}
    deleting: Mapping[Uuid, str] = {}

    @property
    def is_empty(self) -> bool:
        return not (self.initializing or self.initialized or self.deleting)

    @property
    def partitions(self) -> Partitions:
        """The partitions that may be assigned."""
        return {topic_id: topic.partitions for topic_id, topic in self.initialized.items()}

    def with_initializing(self, topics: Mapping[Uuid, InitTopic]) -> StateTopics:
        """Returns the topics with these initializing, and no longer being deleted."""
        return StateTopics(
            merged(self.initializing, topics),
            self.initialized,
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics},
        )

    def with_initialized(self, topics: Mapping[Uuid, InitTopic]) -> StateTopics:
        """Returns the topics with these initialized."""
        return StateTopics(_without(self.initializing, topics), merged(self.initialized, topics), self.deleting)

    def without_initializing(self, topics: Mapping[Uuid, InitTopic]) -> StateTopics:
        """Returns the topics without these initializing, because that failed; it will be tried again."""
        return self._replace(initializing=_without(self.initializing, topics))

    def with_deleting(self, topics: Mapping[Uuid, str]) -> StateTopics:
        """Returns the topics with the state of these being deleted."""
        remaining = {topic_id: topic for topic_id, topic in self.initialized.items() if topic_id not in topics}
        return StateTopics(self.initializing, remaining, {**self.deleting, **topics})

    def without(self, topic_ids: frozenset[Uuid]) -> StateTopics:
        """Returns the topics without these topics, because they or their state were deleted."""
        return StateTopics(
            {topic_id: topic for topic_id, topic in self.initializing.items() if topic_id not in topic_ids},
            {topic_id: topic for topic_id, topic in self.initialized.items() if topic_id not in topic_ids},
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topic_ids},
        )

    def deleted(self, topic_ids: frozenset[Uuid]) -> StateTopics:
        """Returns the topics once the deletion of these has finished."""
        return self._replace(
            deleting={topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topic_ids}
        )

    def has(self, topic_id: Uuid) -> bool:
        return topic_id in self.initializing or topic_id in self.initialized or topic_id in self.deleting


NO_STATE: Final = StateTopics()


def merged(present: Mapping[Uuid, InitTopic], new: Mapping[Uuid, InitTopic]) -> Mapping[Uuid, InitTopic]:
    """Returns the partitions of both, with the newer name."""
    result = dict(present)
    for topic_id, topic in new.items():
        before = present.get(topic_id)
        partitions = topic.partitions if before is None else before.partitions | topic.partitions
        result[topic_id] = topic._replace(partitions=partitions)
    return result


def _without(present: Mapping[Uuid, InitTopic], gone: Mapping[Uuid, InitTopic]) -> Mapping[Uuid, InitTopic]:
    result = {}
    for topic_id, topic in present.items():
        left = topic.partitions - gone[topic_id].partitions if topic_id in gone else topic.partitions
        if left:
            result[topic_id] = topic._replace(partitions=left)
    return result


def from_record(value: ShareGroupStatePartitionMetadataValue) -> StateTopics:
    """Returns the topics in a record."""

    def topics(infos: list[TopicPartitionsInfo]) -> dict[Uuid, InitTopic]:
        return {topic.topic_id: InitTopic(topic.topic_name, frozenset(topic.partitions)) for topic in infos}

    return StateTopics(
        topics(value.initializing_topics),
        topics(value.initialized_topics),
        {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
    )
