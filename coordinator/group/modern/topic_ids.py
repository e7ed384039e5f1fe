"""The ids of subscribed topics, each looked up once in a decision."""

from __future__ import annotations

from coordinator.group.subscription_metadata import TopicTable
from protocol.types import Uuid


class TopicIds:
    """Ids of subscribed topics that exist, each looked up once even if many members name it."""

    def __init__(self, topics: TopicTable) -> None:
        self._topics = topics
        self._ids: dict[str, Uuid | None] = {}
        self._of_subscription: dict[frozenset[str], frozenset[Uuid]] = {}
        self.partition_counts: dict[Uuid, int] = {}

    def of(self, names: frozenset[str]) -> frozenset[Uuid]:
        """Returns the ids of existing topics among the names."""
        topic_ids = self._of_subscription.get(names)
        if topic_ids is None:
            ids = (self._id_of(name) for name in names)
            topic_ids = self._of_subscription[names] = frozenset(topic_id for topic_id in ids if topic_id is not None)
        return topic_ids

    def _id_of(self, name: str) -> Uuid | None:
        if name not in self._ids:
            topic = self._topics.topic(name)
            self._ids[name] = None if topic is None else topic.topic_id
            if topic is not None:
                self.partition_counts[topic.topic_id] = len(topic.partitions)
        return self._ids[name]
