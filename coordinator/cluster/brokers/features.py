"""The features of Kafka 4.4.0, and the features of a new cluster (KIP-584, KIP-778, KIP-1022).

Source: org.apache.kafka.server.common.Feature and MetadataVersion; Kafka's QuorumFeatures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coordinator.cluster.brokers.info import FeatureRange
from coordinator.cluster.configs.resource import DEFAULT_BROKER, ResourceType
from coordinator.cluster.image import ELR_VERSION, METADATA_VERSION, Image
from coordinator.cluster.record import MetadataRecord
from protocol.metadata_records.settings import ConfigRecord, FeatureLevelRecord

KRAFT_VERSION = "kraft.version"
MIN_ISR = "min.insync.replicas"

LATEST_METADATA_VERSION = 33
"""The level of 4.4-IV2."""

SUPPORTED: dict[str, FeatureRange] = {
    METADATA_VERSION: FeatureRange(7, LATEST_METADATA_VERSION),
    ELR_VERSION: FeatureRange(0, 1),
    "group.version": FeatureRange(0, 1),
    KRAFT_VERSION: FeatureRange(0, 1),
    "share.version": FeatureRange(0, 2),
    "streams.version": FeatureRange(0, 1),
    "transaction.version": FeatureRange(0, 2),
}
"""The feature levels that this node supports and registers."""

NOT_SUPPORTED = FeatureRange(0, 0)
"""The levels of an unknown feature. Level 0 turns a feature off."""

BOOTSTRAP_FEATURES: dict[str, int] = {
    METADATA_VERSION: LATEST_METADATA_VERSION,
    ELR_VERSION: 1,
    "group.version": 1,
    "share.version": 2,
    "streams.version": 1,
    "transaction.version": 2,
}
"""The features that `kafka-storage format` of 4.4.0 gives a new cluster, in its order."""

NEEDS: dict[tuple[str, int], tuple[str, int]] = {(ELR_VERSION, 1): (METADATA_VERSION, 23)}
"""A feature's level, and the level of another feature that it requires."""

METADATA_CHANGED = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""Levels of metadata.version that added records or record versions, so that a downgrade below them is not possible."""


def bootstrap_records(features: Mapping[str, int] = BOOTSTRAP_FEATURES) -> list[MetadataRecord]:
    """Returns the records of a bootstrap checkpoint."""
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in features.items()]


def elr_safety_records(image: Image, min_insync_replicas: int) -> Iterator[MetadataRecord]:
    """Yields the records that are written when eligible leader replicas are turned on: one min.insync.replicas for the
    whole cluster, and none for single brokers, so that every controller computes the same (KIP-966).
    """
    if MIN_ISR not in image.configs(DEFAULT_BROKER):
        yield _min_isr("", str(min_insync_replicas))
    for resource in image.configured():
        if resource.type is ResourceType.BROKER and resource.name and MIN_ISR in image.configs(resource):
            yield _min_isr(resource.name, None)


def _min_isr(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.BROKER, resource_name=broker, name=MIN_ISR, value=value)
