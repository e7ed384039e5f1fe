"""The records of an image: the content of a metadata snapshot (Kafka's MetadataImage.write, in its order)."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.cluster.image import METADATA_VERSION, Image, ProducerIds
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.security.acl import record_of
from protocol.metadata_records.settings import ConfigRecord, FeatureLevelRecord, ProducerIdsRecord
from protocol.metadata_records.topics import TopicRecord


def records_of(image: Image) -> Iterator[MetadataRecord]:
    """Yields records that make an equal image out of an empty image."""
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    yield from (broker.to_record() for broker in image.brokers.values())
    yield from (controller.to_record() for controller in image.controllers.values())
    for topic in image.topics():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for index, partition in topic.partitions.items():
            yield partition.to_record(topic.topic_id, index)
    for resource in image.configured():
        for name, value in image.configs(resource).items():
            yield ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
    yield from image.quotas.records()
    if image.producer_ids != ProducerIds():
        next_id, broker_id, broker_epoch = image.producer_ids
        yield ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=next_id)
    yield from (record_of(entry_id, entry) for entry_id, entry in image.acls.items())
    yield from image.scram_credentials
    yield from image.delegation_tokens
