"""Tests a snapshot that replaces unseen records: the changes for subscribers, and the resulting image."""

from __future__ import annotations

import pytest

from coordinator.cluster.changes import (
    AclChanged,
    BrokerChanged,
    Change,
    ConfigChanged,
    Delta,
    FeatureChanged,
    PartitionChanged,
    PartitionCreated,
    TopicCreated,
    TopicDeleted,
)
from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from coordinator.cluster.difference import difference
from coordinator.cluster.image_records import records_of
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.snapshot import Snapshot, SnapshotId
from protocol.errors import KafkaError
from protocol.metadata_records.nodes import FenceBrokerRecord
from protocol.metadata_records.settings import FeatureLevelRecord
from protocol.metadata_records.topics import RemoveTopicRecord
from tests.coordinator.cluster import given

OTHER_ID = b"another-topic's-"


def changes(before: list[MetadataRecord], after: list[MetadataRecord]) -> list[Change]:
    return difference(given.image(*before), given.image(*after))


def test_the_same_image_has_no_difference() -> None:
    assert changes(given.topic("orders", 3), given.topic("orders", 3)) == []


def test_a_topic_that_came_is_created_with_its_partitions() -> None:
    after = given.image(*given.topic("orders", 2))
    topic = after.topic("orders")
    assert topic is not None
    assert difference(given.image(), after) == [
        TopicCreated(topic),
        PartitionCreated(topic, 0, topic.partitions[0]),
        PartitionCreated(topic, 1, topic.partitions[1]),
    ]


def test_a_topic_that_went_is_deleted_as_it_last_was() -> None:
    (deleted,) = changes(given.topic("orders", 2), [])
    assert isinstance(deleted, TopicDeleted)
    assert (deleted.topic.name, list(deleted.topic.partitions)) == ("orders", [0, 1])


def test_a_topic_that_was_made_anew_is_deleted_before_it_is_created() -> None:
    reported = changes(given.topic("orders"), given.topic("orders", topic_id=OTHER_ID))
    assert [type(change) for change in reported] == [TopicDeleted, TopicCreated, PartitionCreated]


def test_a_partition_that_changed_or_was_added_is_told() -> None:
    reported = changes(given.topic("orders"), given.topic("orders", 2, leader_epoch=4))
    assert [type(change) for change in reported] == [PartitionChanged, PartitionCreated]
    assert isinstance(reported[0], PartitionChanged)
    assert (reported[0].before.leader_epoch, reported[0].after.leader_epoch) == (0, 4)


def test_configs_features_brokers_and_other_rooms_are_told() -> None:
    acl = given.acl(b"x" * 16)
    before = [given.broker_config("", "a", "1"), given.broker_config("", "b", "1"), acl]
    after = [
        given.broker_config("", "b", "2"),
        FeatureLevelRecord(name="share.version", feature_level=1),
        FenceBrokerRecord(id=1, epoch=0),
    ]
    everybody = ConfigResource(ResourceType.BROKER, "")
    assert changes(before, after) == [
        FeatureChanged("share.version", 1),
        BrokerChanged(1),
        ConfigChanged(everybody, "a", None),
        ConfigChanged(everybody, "b", "2"),
        AclChanged(b"x" * 16),
    ]


def test_a_loader_goes_on_with_a_snapshot_and_its_image_stays_the_same_object() -> None:
    image = given.image(*given.topic("orders"))
    loader = MetadataLoader(image)
    deltas: list[Delta] = []
    loader.subscribe(deltas.append)
    later = given.image(*given.topic("invoices", 2, topic_id=OTHER_ID))
    loader.replace(SnapshotId(500, 7), Snapshot(list(records_of(later)), []))
    assert loader.image is image
    assert image.topic_names() == ["invoices"]
    assert (image.offset, image.epoch, image.controller_id) == (499, 7, given.NODE)
    assert [type(change) for change in deltas[0].changes] == [
        TopicDeleted,
        TopicCreated,
        PartitionCreated,
        PartitionCreated,
    ]
    assert (deltas[0].offset, deltas[0].epoch) == (499, 7)
    created = next(change for change in deltas[0].changes if isinstance(change, TopicCreated))
    assert created.topic is image.topic("invoices")


def test_a_snapshot_that_cannot_be_changes_nothing() -> None:
    image = given.image(*given.topic("orders"))
    loader = MetadataLoader(image)
    with pytest.raises(KafkaError):
        loader.replace(SnapshotId(500, 7), Snapshot([RemoveTopicRecord(topic_id=OTHER_ID)], []))
    assert image.topic_names() == ["orders"]
