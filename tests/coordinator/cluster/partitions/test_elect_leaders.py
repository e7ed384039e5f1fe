"""Tests ElectLeaders: preferred and unclean elections."""

from __future__ import annotations

import pytest

from coordinator.cluster.image import Image
from coordinator.cluster.partitions.elect_leaders import ElectionType, elect_leaders
from coordinator.cluster.record import MetadataRecord
from protocol.errors import ErrorCode
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.metadata_records.topics import PartitionChangeRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import NODE, TOPIC_ID

GONE = 2
"""A broker that is not registered."""


def elect(
    image: Image, kind: int, partitions: list[int] | None = None, topic: str = "orders"
) -> tuple[list[MetadataRecord], list[tuple[int, int]]]:
    topics = None if partitions is None else [TopicPartitions(topic=topic, partitions=partitions)]
    decided = given.decide(
        elect_leaders, image, ElectLeadersRequest(election_type=kind, topic_partitions=topics), given.RULES
    )
    (result,) = decided.answer.replica_election_results
    return list(decided.records), [(one.partition_id, one.error_code) for one in result.partition_result]


def test_a_partition_led_by_its_first_replica_needs_no_election() -> None:
    image = given.image(*given.topic("orders"))
    assert elect(image, ElectionType.PREFERRED, [0]) == ([], [(0, ErrorCode.ELECTION_NOT_NEEDED)])


def test_of_all_partitions_only_those_with_news_are_told() -> None:
    image = given.image(*given.topic("orders", 2))
    assert elect(image, ElectionType.PREFERRED) == ([], [])


def test_the_first_replica_takes_over_when_it_is_in_sync() -> None:
    image = given.image(*given.topic("orders", replicas=(NODE, GONE), isr=(NODE, GONE), leader=GONE))
    records, results = elect(image, ElectionType.PREFERRED, [0])
    assert records == [PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=NODE)]
    assert results == [(0, ErrorCode.NONE)]


def test_a_first_replica_that_is_gone_cannot_lead() -> None:
    image = given.image(*given.topic("orders", replicas=(GONE, NODE), isr=(NODE,), leader=NODE))
    assert elect(image, ElectionType.PREFERRED, [0]) == ([], [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)])


def test_an_unclean_election_makes_a_replica_out_of_sync_the_leader_and_says_that_it_recovers() -> None:
    image = given.image(*given.topic("orders", replicas=(GONE, NODE), isr=(GONE,), leader=-1))
    records, results = elect(image, ElectionType.UNCLEAN, [0])
    changed = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=NODE, isr=[NODE], leader_recovery_state=1)
    assert (records, results) == ([changed], [(0, ErrorCode.NONE)])


def test_an_unclean_election_elects_cleanly_where_it_can() -> None:
    image = given.image(*given.topic("orders", isr=(), leader=-1, elr=(NODE,), last_known_elr=(NODE,)))
    records, _ = elect(image, ElectionType.UNCLEAN, [0])
    assert records == [
        PartitionChangeRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            leader=NODE,
            isr=[NODE],
            eligible_leader_replicas=[],
            last_known_elr=[],
        )
    ]


def test_an_unclean_election_needs_a_partition_without_leader_and_a_replica_that_is_up() -> None:
    led = given.image(*given.topic("orders"))
    assert elect(led, ElectionType.UNCLEAN, [0]) == ([], [(0, ErrorCode.ELECTION_NOT_NEEDED)])
    lost = given.image(*given.topic("orders", replicas=(GONE,), isr=(GONE,), leader=-1))
    assert elect(lost, ElectionType.UNCLEAN, [0]) == ([], [(0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)])


@pytest.mark.parametrize(("topic", "partition"), [("absent", 0), ("orders", 5)])
def test_what_is_not_there_elects_nobody(topic: str, partition: int) -> None:
    image = given.image(*given.topic("orders"))
    _, results = elect(image, ElectionType.PREFERRED, [partition], topic)
    assert results == [(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_an_unknown_kind_of_election_is_refused() -> None:
    assert elect(given.image(), 7, [0, 1]) == (
        [],
        [(0, ErrorCode.INVALID_REQUEST), (1, ErrorCode.INVALID_REQUEST)],
    )
