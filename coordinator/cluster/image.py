"""The registry as records: what a snapshot of the metadata log holds (Kafka's MetadataImage.write, in its order)."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.registry import METADATA_VERSION, ProducerIds, Registry
from protocol.metadata_records.settings import ConfigRecord, FeatureLevelRecord, ProducerIdsRecord
from protocol.metadata_records.topics import TopicRecord


def records_of(registry: Registry) -> Iterator[MetadataRecord]:
    """Records that make an empty registry like this one."""
    for name in sorted(registry.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=registry.features[name])
    yield from (broker.to_record() for broker in registry.brokers.values())
    yield from (controller.to_record() for controller in registry.controllers.values())
    for topic in registry.topics():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for index, partition in topic.partitions.items():
            yield partition.to_record(topic.topic_id, index)
    for resource in registry.configured():
        for name, value in registry.configs(resource).items():
            yield ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
    yield from registry.kept.values()
    if registry.producer_ids != ProducerIds():
        next_id, broker_id, broker_epoch = registry.producer_ids
        yield ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=next_id)
