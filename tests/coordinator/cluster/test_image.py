"""Tests the image: the effect of each record, and the change that it reports."""

from __future__ import annotations

import pytest

from coordinator.cluster.changes import (
    AclChanged,
    ConfigChanged,
    FeatureChanged,
    PartitionChanged,
    PartitionCreated,
    TopicCreated,
    TopicDeleted,
)
from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from coordinator.cluster.image import NO_CONFIGS
from coordinator.cluster.security.acl import entry_of
from protocol.metadata_records.security import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from protocol.metadata_records.settings import ClientQuotaRecord, EntityData, FeatureLevelRecord, ProducerIdsRecord
from protocol.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord
from protocol.types import TopicPartition
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import DIRECTORY, NODE, TOPIC_ID, topic_config

OTHER_ID = b"another-topic's-"
ORDERS = ConfigResource(ResourceType.TOPIC, "orders")


def test_a_topic_is_found_by_name_and_by_id() -> None:
    image = given.image(*given.topic("orders", 2))
    topic = image.topic("orders")
    assert topic is not None
    assert image.topic_by_id(TOPIC_ID) is topic
    assert list(topic.partitions) == [0, 1]
    assert image.partition(TopicPartition("orders", 1)) == topic.partitions[1]
    assert image.partition(TopicPartition("orders", 2)) is None
    assert image.partitions_in[DIRECTORY] == 2


def test_a_deleted_topic_leaves_nothing() -> None:
    image = given.image(*given.topic("or.ders"), topic_config("or.ders", "retention.ms", "5"))
    image.apply(RemoveTopicRecord(topic_id=TOPIC_ID))
    assert image.topic("or.ders") is image.topic_by_id(TOPIC_ID) is None
    assert image.topic_configs("or.ders") == NO_CONFIGS
    assert image.colliding("or_ders") is None
    assert image.partitions_in[DIRECTORY] == 0
    for record in given.topic("or_ders"):
        image.apply(record)


def test_a_topic_cannot_come_twice() -> None:
    image = given.image(*given.topic("orders"))
    with pytest.raises(KeyError):
        image.apply(given.topic("orders")[0])


def test_every_change_of_a_leader_is_an_epoch_and_every_change_a_partition_epoch() -> None:
    image = given.image(*given.topic("orders"))
    change = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[NODE])
    image.apply(change)
    change.leader = NODE
    image.apply(change)
    partition = image.partition(TopicPartition("orders", 0))
    assert partition is not None
    assert (partition.leader_epoch, partition.partition_epoch) == (1, 2)


def test_a_replica_that_moves_is_counted_where_it_is() -> None:
    image = given.image(*given.topic("orders"))
    image.apply(PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, directories=[b"directory-two---"]))
    assert (image.partitions_in[DIRECTORY], image.partitions_in[b"directory-two---"]) == (0, 1)


def test_a_setting_that_is_removed_counts_no_more() -> None:
    settings = [topic_config("orders", "retention.ms", "5"), topic_config("orders", "segment.ms", "7")]
    image = given.image(*given.topic("orders"), *settings)
    image.apply(topic_config("orders", "retention.ms", None))
    assert image.topic_configs("orders") == {"segment.ms": "7"}
    image.apply(topic_config("orders", "segment.ms", None))
    assert image.topic_configs("orders") == NO_CONFIGS


def test_a_record_is_applied_and_its_change_told() -> None:
    image = given.image()
    created, first = given.topic("orders")
    setting = topic_config("orders", "retention.ms", "5")
    led = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=NODE)
    changes = [image.apply(record) for record in (created, setting, first, led)]
    topic = image.topic("orders")
    assert topic is not None
    after = topic.partitions[0]
    before = after._replace(leader_epoch=0, partition_epoch=0)
    changes.append(image.apply(FeatureLevelRecord(name="group.version", feature_level=0)))
    changes.append(image.apply(RemoveTopicRecord(topic_id=TOPIC_ID)))
    assert changes == [
        TopicCreated(topic),
        ConfigChanged(ORDERS, "retention.ms", "5"),
        PartitionCreated(topic, 0, before),
        PartitionChanged(topic, 0, before, after),
        FeatureChanged("group.version", 0),
        TopicDeleted(topic),
    ]


def test_the_whole_record_of_a_partition_replaces_it() -> None:
    image = given.image(*given.topic("orders"))
    topic = image.topic("orders")
    assert topic is not None
    before = topic.partitions[0]
    change = image.apply(given.partition(0, leader=-1, leader_epoch=5, partition_epoch=7))
    after = before._replace(leader=-1, leader_epoch=5, partition_epoch=7)
    assert (change, topic.partitions[0]) == (PartitionChanged(topic, 0, before, after), after)


def test_an_access_control_entry_is_there_until_it_is_removed() -> None:
    image = given.image()
    entry = AccessControlEntryRecord(
        id=b"acl-one---------",
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    assert image.apply(entry) == AclChanged(entry.id)
    assert dict(image.acls.items()) == {entry.id: entry_of(entry)}
    assert image.apply(RemoveAccessControlEntryRecord(id=entry.id)) == AclChanged(entry.id)
    assert len(image.acls) == 0


def test_a_quota_is_replaced_by_entity_and_key_and_taken_away() -> None:
    image = given.image()
    entity = [EntityData(entity_type="user", entity_name="a"), EntityData(entity_type="client-id", entity_name=None)]
    for value in (1.0, 2.0):
        image.apply(ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=value, remove=False))
        entity.reverse()
    quotas = {(("client-id", None), ("user", "a")): {"producer_byte_rate": 2.0}}
    assert dict(image.quotas.items()) == quotas
    image.apply(ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=0.0, remove=True))
    assert not image.quotas


def test_producer_ids_go_on_where_the_last_block_ended() -> None:
    image = given.image(ProducerIdsRecord(broker_id=NODE, broker_epoch=5, next_producer_id=3000))
    assert image.producer_ids.next_id == 3000


def test_a_copy_and_its_image_do_not_show_each_others_changes() -> None:
    image = given.image(*given.topic("orders"))
    copy = image.copy()
    given.apply(image, [PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=-1)])
    given.apply(copy, [topic_config("orders", "retention.ms", "5"), *given.topic("pay.ments", topic_id=OTHER_ID)])
    leaders = [every.topic("orders").partitions[0].leader for every in (image, copy)]  # type: ignore[union-attr]
    assert leaders == [-1, NODE]
    assert image.topic_configs("orders") == {}
    assert (image.colliding("pay_ments"), copy.colliding("pay_ments")) == (None, "pay.ments")
    given.apply(image, [RemoveTopicRecord(topic_id=TOPIC_ID)])
    assert copy.topic_names() == ["orders", "pay.ments"]
