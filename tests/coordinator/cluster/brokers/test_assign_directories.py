"""Tests AssignReplicasToDirs: the directories of a broker's replicas."""

from __future__ import annotations

import pytest

from coordinator.cluster.brokers.assign_directories import assign_replicas_to_dirs
from coordinator.cluster.image import Image
from coordinator.cluster.record import MetadataRecord
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from protocol.metadata_records.nodes import BrokerRegistrationChangeRecord
from protocol.metadata_records.topics import PartitionChangeRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import DIRECTORY, NODE, RULES, TOPIC_ID

OTHER = b"directory-two---"
THIRD = b"directory-three-"


def assign(
    image: Image, directory: bytes, *indexes: int, topic_id: bytes = TOPIC_ID
) -> tuple[list[MetadataRecord], list[int]]:
    topics = [TopicData(topic_id=topic_id, partitions=[PartitionData(partition_index=index) for index in indexes])]
    request = AssignReplicasToDirsRequest(
        broker_id=NODE,
        broker_epoch=image.brokers[NODE].epoch,
        directories=[DirectoryData(id=directory, topics=topics)],
    )
    decided = given.decide(assign_replicas_to_dirs, image, request, RULES)
    return decided.records, [one.error_code for one in decided.answer.directories[0].topics[0].partitions]


def two_directories() -> Image:
    image = given.image(
        *given.topic("orders", 2), *given.topic("theirs", 1, b"their topic's id", replicas=(2,), isr=(2,))
    )
    image.apply(BrokerRegistrationChangeRecord(broker_id=NODE, broker_epoch=0, log_dirs=[DIRECTORY, OTHER]))
    return image


def test_a_replica_that_is_elsewhere_is_recorded_there() -> None:
    moved = PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, directories=[OTHER])
    assert assign(two_directories(), OTHER, 1) == ([moved], [ErrorCode.NONE])


def test_a_replica_that_is_where_it_was_needs_no_record() -> None:
    assert assign(two_directories(), DIRECTORY, 0, 1) == ([], [ErrorCode.NONE, ErrorCode.NONE])


def test_a_replica_in_a_directory_that_is_not_online_has_no_leader() -> None:
    moved, departed = assign(two_directories(), THIRD, 0)[0]
    assert moved == PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, directories=[THIRD])
    assert isinstance(departed, PartitionChangeRecord)
    assert departed.leader == -1


def test_a_partition_whose_only_replica_is_in_a_new_directory_is_led_from_there() -> None:
    """This happens after its disk was replaced: nothing else would ever elect a leader."""
    image = two_directories()
    image.features["eligible.leader.replicas.version"] = 1
    image.apply(
        PartitionChangeRecord(
            partition_id=0, topic_id=TOPIC_ID, leader=-1, isr=[], last_known_elr=[NODE], directories=[THIRD]
        )
    )
    (moved,), _ = assign(image, OTHER, 0)
    assert isinstance(moved, PartitionChangeRecord)
    assert (moved.directories, moved.leader, moved.isr) == ([OTHER], NODE, [NODE])


def test_what_is_not_there_or_not_the_brokers_is_not_assigned() -> None:
    image = two_directories()
    assert assign(image, OTHER, 7) == ([], [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
    assert assign(image, OTHER, 0, topic_id=b"nobody's topic--") == ([], [ErrorCode.UNKNOWN_TOPIC_ID])
    assert assign(image, OTHER, 0, topic_id=b"their topic's id") == ([], [ErrorCode.NOT_LEADER_OR_FOLLOWER])


def test_directories_are_assigned_by_a_registered_broker_and_by_a_metadata_that_has_them() -> None:
    image = two_directories()
    request = AssignReplicasToDirsRequest(broker_id=NODE, broker_epoch=1, directories=[])
    with pytest.raises(KafkaError) as caught:
        given.decide(assign_replicas_to_dirs, image, request, RULES)
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH
    image.features["metadata.version"] = 16
    with pytest.raises(KafkaError) as caught:
        given.decide(assign_replicas_to_dirs, image, request, RULES)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
