"""Tests AlterPartitionReassignments and ListPartitionReassignments, on a single node and on the rest of a larger
cluster."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.cluster.image import Image
from coordinator.cluster.partitions.reassignments import alter_partition_reassignments, list_partition_reassignments
from coordinator.cluster.record import MetadataRecord
from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from protocol.metadata_records.nodes import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import DIRECTORY, NODE, partition_change

OTHER = 2
OTHER_DIRECTORY = b"directory-two---"


def reassign(
    image: Image, replicas: list[int] | None, topic: str = "orders", index: int = 0, may_change: bool = True
) -> tuple[list[MetadataRecord], int, str | None]:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[partition])], allow_replication_factor_change=may_change
    )
    decided = given.decide(alter_partition_reassignments, image, request, given.RULES)
    (result,) = decided.answer.responses[0].partitions
    return list(decided.records), result.error_code, result.error_message


def two_brokers(**state: Any) -> Image:
    second = RegisterBrokerRecord(
        broker_id=OTHER,
        incarnation_id=bytes(16),
        broker_epoch=99,
        end_points=[],
        features=[],
        rack=None,
        fenced=False,
        log_dirs=[OTHER_DIRECTORY],
    )
    return given.image(second, *given.topic("orders", **state))


def test_the_assignment_that_there_is_needs_no_record() -> None:
    assert reassign(given.image(*given.topic("orders")), [NODE]) == ([], ErrorCode.NONE, None)


def test_a_broker_that_is_not_there_gets_no_replica() -> None:
    assert reassign(given.image(*given.topic("orders")), [7]) == (
        [],
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 7, but no such broker is registered.",
    )


def test_without_a_reassignment_there_is_none_to_cancel() -> None:
    image = given.image(*given.topic("orders"))
    assert reassign(image, None)[1] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize(("topic", "index", "message"), [
    ("absent", 0, "Unable to find a topic named absent."),
    ("orders", 3, "Unable to find partition orders:3."),
])  # fmt: skip
def test_what_is_not_there_is_not_reassigned(topic: str, index: int, message: str) -> None:
    image = given.image(*given.topic("orders"))
    assert reassign(image, [NODE], topic, index) == ([], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)


def test_a_replica_on_a_broker_that_is_gone_is_dropped_at_once() -> None:
    image = given.image(*given.topic("orders", replicas=(NODE, OTHER), directories=(DIRECTORY, OTHER_DIRECTORY)))
    records, code, _ = reassign(image, [NODE])
    assert code == ErrorCode.NONE
    assert records == [partition_change(replicas=[NODE], directories=[DIRECTORY], leader=NODE)]


def test_a_new_replica_is_added_while_the_old_one_stays_until_it_is_in_sync() -> None:
    image = two_brokers()
    records, _, _ = reassign(image, [OTHER])
    assert records == [
        partition_change(
            replicas=[OTHER, NODE],
            directories=[OTHER_DIRECTORY, DIRECTORY],
            adding_replicas=[OTHER],
            removing_replicas=[NODE],
        )
    ]
    image.apply(records[0])
    listed = list_partition_reassignments(image, ListPartitionReassignmentsRequest())
    (ongoing,) = listed.topics[0].partitions
    assert (ongoing.replicas, ongoing.adding_replicas, ongoing.removing_replicas) == ([2, 1], [2], [1])
    records, _, _ = reassign(image, None)
    assert records == [
        partition_change(
            replicas=[NODE], directories=[DIRECTORY], adding_replicas=[], removing_replicas=[], leader=NODE
        )
    ]


def test_replicas_that_only_change_places_change_at_once() -> None:
    both = {"replicas": (NODE, OTHER), "isr": (NODE, OTHER), "directories": (DIRECTORY, OTHER_DIRECTORY)}
    records, _, _ = reassign(two_brokers(**both), [OTHER, NODE])
    assert records == [partition_change(replicas=[OTHER, NODE], directories=[OTHER_DIRECTORY, DIRECTORY])]


def test_a_leader_that_is_dropped_hands_over() -> None:
    both = {"replicas": (NODE, OTHER), "isr": (NODE, OTHER), "directories": (DIRECTORY, OTHER_DIRECTORY)}
    records, _, _ = reassign(two_brokers(**both), [OTHER])
    assert records == [partition_change(replicas=[OTHER], directories=[OTHER_DIRECTORY], isr=[OTHER], leader=OTHER)]


def test_the_replication_factor_stays_when_it_must() -> None:
    assert reassign(two_brokers(), [NODE, OTHER], may_change=False) == (
        [],
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 1 to 2",
    )


def test_replicas_that_come_count_in_the_replication_factor_and_those_that_go_do_not() -> None:
    under_way = {"replicas": (NODE, OTHER), "adding_replicas": (OTHER,), "directories": (DIRECTORY, OTHER_DIRECTORY)}
    image = two_brokers(**under_way)
    assert reassign(image, [NODE], may_change=False)[1] == ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(image, [OTHER, NODE], may_change=False)[1] == ErrorCode.NONE


@pytest.mark.parametrize("is_up", [True, False])
def test_who_is_no_replica_any_more_never_leads(is_up: bool) -> None:
    moving = {
        "replicas": (OTHER, NODE), "isr": (OTHER,), "leader": OTHER, "adding_replicas": (OTHER,),
        "directories": (OTHER_DIRECTORY, DIRECTORY),
    }  # fmt: skip
    image = two_brokers(**moving)
    assert reassign(image, None)[1] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    image.apply(given.topic_config("orders", "unclean.leader.election.enable", "true"))
    if not is_up:
        image.apply(BrokerRegistrationChangeRecord(broker_id=NODE, broker_epoch=image.brokers[NODE].epoch, fenced=1))
    (record,), code, _ = reassign(image, None)
    assert code == ErrorCode.NONE
    image.apply(record)
    partition = image.topic("orders").partitions[0]  # type: ignore[union-attr]
    assert (partition.replicas, partition.isr, partition.last_known_elr) == ((NODE,), (NODE,), ())
    assert partition.leader == (NODE if is_up else -1)


def test_a_cancelled_reassignment_leaves_a_replica() -> None:
    image = two_brokers(replicas=(OTHER,), isr=(OTHER,), leader=OTHER, adding_replicas=(OTHER,))
    image.apply(given.topic_config("orders", "unclean.leader.election.enable", "true"))
    assert reassign(image, None) == (
        [],
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Unable to revert partition assignment for orders:0 because no replica would remain.",
    )


def test_nothing_is_under_way_on_one_node() -> None:
    image = given.image(*given.topic("orders"))
    assert list_partition_reassignments(image, ListPartitionReassignmentsRequest()).topics == []
    named = [ListPartitionReassignmentsTopics(name="orders", partition_indexes=[0, 9])]
    assert list_partition_reassignments(image, ListPartitionReassignmentsRequest(topics=named)).topics == []
