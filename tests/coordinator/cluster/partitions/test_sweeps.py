"""Tests the periodic elections of preferred and unclean leaders."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.cluster.brokers.heartbeat import broker_heartbeat
from coordinator.cluster.brokers.registration import register_broker
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.partitions.sweeps import MAX_ELECTIONS, elect_preferred_leaders, elect_unclean_leaders
from coordinator.cluster.record import ClusterResult, MetadataRecord
from protocol.metadata_records.topics import PartitionChangeRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import NODE, TOPIC_ID, topic_config

OTHER = 2
GONE = 3
"""A broker that is not registered."""
UNCLEAN = topic_config("orders", "unclean.leader.election.enable", "true")


def led_by_another(partitions: int = 1) -> list[MetadataRecord]:
    return given.topic("orders", partitions, replicas=(NODE, GONE), isr=(NODE, GONE), leader=GONE)


def leaderless(partitions: int = 1) -> list[MetadataRecord]:
    return given.topic("orders", partitions, replicas=(GONE, NODE), isr=(GONE,), leader=-1)


def test_the_preferred_leader_takes_over_if_it_is_in_sync() -> None:
    result, more = elect_preferred_leaders(given.image(*led_by_another()), given.RULES)
    assert result.records == [PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=NODE)]
    assert not more


def image_of_two(*records: MetadataRecord) -> Image:
    """Returns a cluster that also has a second broker."""
    image = given.image()
    registration = given.registration(OTHER, log_dirs=[b"directory-two---"])
    given.apply(image, register_broker(image, registration, given.RULES)[0])
    given.apply(image, broker_heartbeat(image, given.heartbeat(image, OTHER), given.RULES)[0])
    given.apply(image, records)
    return image


@pytest.mark.parametrize("state", [
    {},
    {"replicas": (NODE, OTHER), "isr": (OTHER,), "leader": OTHER},
    {"replicas": (GONE, NODE), "isr": (GONE, NODE), "leader": NODE},
], ids=["leads already", "is not in sync", "is gone"])  # fmt: skip
def test_no_other_partition_changes_its_leader(state: dict[str, object]) -> None:
    result, more = elect_preferred_leaders(image_of_two(*given.topic("orders", 1, TOPIC_ID, **state)), given.RULES)
    assert (result.records, more) == ([], False)


def test_an_unclean_leader_needs_the_topics_permission() -> None:
    assert elect_unclean_leaders(given.image(*leaderless()), given.RULES)[0].records == []
    (record,) = elect_unclean_leaders(given.image(*leaderless(), UNCLEAN), given.RULES)[0].records
    assert record == PartitionChangeRecord(
        partition_id=0, topic_id=TOPIC_ID, leader=NODE, isr=[NODE], leader_recovery_state=1
    )


def test_a_partition_with_a_leader_needs_no_unclean_one() -> None:
    assert elect_unclean_leaders(given.image(*given.topic("orders"), UNCLEAN), given.RULES)[0].records == []


@pytest.mark.parametrize(("sweep", "records"), [
    (elect_preferred_leaders, led_by_another(MAX_ELECTIONS + 1)),
    (elect_unclean_leaders, [*leaderless(MAX_ELECTIONS + 1), UNCLEAN]),
])  # fmt: skip
def test_a_sweep_that_leaves_some_says_so(
    sweep: Callable[[Image, ConfigRules], tuple[ClusterResult, bool]], records: list[MetadataRecord]
) -> None:
    image = given.image(*records)
    first, more = sweep(image, given.RULES)
    assert (len(first.records), more) == (MAX_ELECTIONS, True)
    given.apply(image, first.records)
    rest, more = sweep(image, given.RULES)
    assert (len(rest.records), more) == (1, False)
