"""Tells what changed from one image to another: a snapshot takes the place of records that nobody saw one by one.

Source: the image deltas that Kafka's MetadataLoader makes of a snapshot (MetadataDelta.finishSnapshot).
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.cluster.changes import (
    BrokerChanged,
    Change,
    ConfigChanged,
    FeatureChanged,
    KeptChanged,
    PartitionChanged,
    PartitionCreated,
    TopicCreated,
    TopicDeleted,
)
from coordinator.cluster.image import Image
from coordinator.cluster.topics.topic import Topic


def difference(before: Image, after: Image) -> list[Change]:
    """The changes that make `after` of `before`, in an order in which records may have made them: what is gone goes
    first, so that a topic may be there again under another id."""
    return [
        *_deleted_topics(before, after),
        *_features(before, after),
        *_brokers(before, after),
        *_configs(before, after),
        *_topics(before, after),
        *_other_records(before, after),
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


def _other_records(before: Image, after: Image) -> Iterator[Change]:
    for key in dict.fromkeys((*before.other_records, *after.other_records)):
        if before.other_records.get(key) != after.other_records.get(key):
            yield KeptChanged(key)
