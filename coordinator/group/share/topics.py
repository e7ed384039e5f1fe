"""Which share partitions of a group have durable state: is it there, is it being made, is it being deleted?

Only partitions whose state is there are assigned. Source: ShareGroupStatePartitionMetadataInfo and the methods around
it in GroupMetadataManager (KIP-932).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from protocol.coordinator_records.share_group import ShareGroupStatePartitionMetadataValue, TopicPartitionsInfo
from protocol.types import Uuid

Partitions = Mapping[Uuid, frozenset[int]]


class InitTopic(NamedTuple):
    """A topic's name, and partitions of it."""

    name: str
    partitions: frozenset[int]


class StateTopics(NamedTuple):
    """As the group's record has it."""

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
        """State is being made; what was to be deleted of these topics is not."""
        return StateTopics(
            merged(self.initializing, topics),
            self.initialized,
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics},
        )

    def with_initialized(self, topics: Mapping[Uuid, InitTopic]) -> StateTopics:
        """State has been made."""
        return StateTopics(_without(self.initializing, topics), merged(self.initialized, topics), self.deleting)

    def without_initializing(self, topics: Mapping[Uuid, InitTopic]) -> StateTopics:
        """State could not be made: it will be tried again."""
        return self._replace(initializing=_without(self.initializing, topics))

    def with_deleting(self, topics: Mapping[Uuid, str]) -> StateTopics:
        """State of whole topics is being deleted."""
        remaining = {topic_id: topic for topic_id, topic in self.initialized.items() if topic_id not in topics}
        return StateTopics(self.initializing, remaining, {**self.deleting, **topics})

    def without(self, topic_ids: frozenset[Uuid]) -> StateTopics:
        """Topics are gone, or their state is."""
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
    """Partitions of both; the name of what is newer."""
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
    """Returns the topics as a record has them."""

    def topics(infos: list[TopicPartitionsInfo]) -> dict[Uuid, InitTopic]:
        return {topic.topic_id: InitTopic(topic.topic_name, frozenset(topic.partitions)) for topic in infos}

    return StateTopics(
        topics(value.initializing_topics),
        topics(value.initialized_topics),
        {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
    )
