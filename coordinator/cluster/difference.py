"""Computes the changes between two images, for a snapshot that replaces records which subscribers have not seen.

Source: the image deltas that Kafka's MetadataLoader makes of a snapshot (MetadataDelta.finishSnapshot).
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.cluster.changes import (
    AclChanged,
    BrokerChanged,
    Change,
    ConfigChanged,
    FeatureChanged,
    PartitionChanged,
    PartitionCreated,
    QuotaChanged,
    TopicCreated,
    TopicDeleted,
)
from coordinator.cluster.image import Image
from coordinator.cluster.topics.topic import Topic


def difference(before: Image, after: Image) -> list[Change]:
    """Returns the changes from `before` to `after`, in an order in which records could have made them. Removals come
    first, because a topic may exist again under another id.
    """
    return [
        *_deleted_topics(before, after),
        *_features(before, after),
        *_brokers(before, after),
        *_configs(before, after),
        *_topics(before, after),
        *_quotas(before, after),
        *_acls(before, after),
    ]


def _deleted_topics(before: Image, after: Image) -> Iterator[Change]:
    for topic in before.topics():
        if after.topic_by_id(topic.topic_id) is None:
            yield TopicDeleted(topic)


def _topics(before: Image, after: Image) -> Iterator[Change]:
    for topic in after.topics():
        earlier = before.topic_by_id(topic.topic_id)
        if earlier is None:
            yield TopicCreated(topic)
        yield from _partitions(earlier, topic)


def _partitions(earlier: Topic | None, topic: Topic) -> Iterator[Change]:
    for index, partition in topic.partitions.items():
        old = None if earlier is None else earlier.partitions.get(index)
        if old is None:
            yield PartitionCreated(topic, index, partition)
        elif old != partition:
            yield PartitionChanged(topic, index, old, partition)


def _configs(before: Image, after: Image) -> Iterator[Change]:
    for resource in dict.fromkeys((*before.configured(), *after.configured())):
        old, new = before.configs(resource), after.configs(resource)
        for name in dict.fromkeys((*old, *new)):
            if old.get(name) != new.get(name):
                yield ConfigChanged(resource, name, new.get(name))


def _features(before: Image, after: Image) -> Iterator[Change]:
    for name in dict.fromkeys((*before.features, *after.features)):
        if before.features.get(name) != after.features.get(name):
            yield FeatureChanged(name, after.features.get(name, 0))


def _brokers(before: Image, after: Image) -> Iterator[Change]:
    for broker_id in dict.fromkeys((*before.brokers, *after.brokers)):
        if before.brokers.get(broker_id) != after.brokers.get(broker_id):
            yield BrokerChanged(broker_id)


def _quotas(before: Image, after: Image) -> Iterator[Change]:
    for entity in dict.fromkeys(entity for image in (before, after) for entity, _ in image.quotas.items()):
        old, new = before.quotas.of(entity), after.quotas.of(entity)
        yield from (QuotaChanged(entity, key) for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key))


def _acls(before: Image, after: Image) -> Iterator[Change]:
    for entry_id in dict.fromkeys(entry_id for image in (before, after) for entry_id, _ in image.acls.items()):
        if before.acls.get(entry_id) != after.acls.get(entry_id):
            yield AclChanged(entry_id)
