"""Tests that a request without time left is answered REQUEST_TIMED_OUT as a whole, and writes no records."""

from __future__ import annotations

import pytest

from coordinator.cluster.partitions.elect_leaders import elect_leaders
from coordinator.cluster.partitions.reassignments import alter_partition_reassignments
from coordinator.cluster.topics.create import create_topics
from coordinator.cluster.topics.create_partitions import create_partitions
from coordinator.cluster.topics.delete import delete_topics
from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import NODE, OPTIONS, RULES

TOO_LATE = ErrorCode.REQUEST_TIMED_OUT

no_time = pytest.mark.parametrize("timeout_ms", [-(2**31), -1, 0])


@no_time
def test_no_topic_is_created(timeout_ms: int) -> None:
    request = CreateTopicsRequest(topics=[given.creatable("new"), given.creatable("orders")], timeout_ms=timeout_ms)
    decided = given.decide(create_topics, given.image(*given.topic("orders")), request, OPTIONS, RULES, given.ids())
    assert [topic.error_code for topic in decided.answer.topics] == [TOO_LATE, TOO_LATE]
    assert not decided.records


@no_time
def test_no_partition_is_added(timeout_ms: int) -> None:
    topics = [CreatePartitionsTopic(name="orders", count=3, assignments=None)]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=False)
    decided = given.decide(create_partitions, given.image(*given.topic("orders")), request)
    assert [topic.error_code for topic in decided.answer.results] == [TOO_LATE]
    assert not decided.records


@no_time
def test_no_topic_is_deleted(timeout_ms: int) -> None:
    request = DeleteTopicsRequest(topic_names=["orders", "twice", "twice"], timeout_ms=timeout_ms)
    decided = given.decide(delete_topics, given.image(*given.topic("orders")), request, OPTIONS, 5)
    assert [topic.error_code for topic in decided.answer.responses] == [TOO_LATE] * 3
    assert not decided.records


@no_time
def test_no_leader_is_elected(timeout_ms: int) -> None:
    image = given.image(*given.topic("orders", replicas=(NODE, 2), isr=(NODE, 2), leader=2))
    for topics in (None, [TopicPartitions(topic="orders", partitions=[0])]):
        decided = given.decide(
            elect_leaders, image, ElectLeadersRequest(topic_partitions=topics, timeout_ms=timeout_ms), RULES
        )
        assert decided.answer.error_code == TOO_LATE
        assert not decided.records


@no_time
def test_no_replica_moves(timeout_ms: int) -> None:
    topics = [ReassignableTopic(name="orders", partitions=[ReassignablePartition(partition_index=0, replicas=[NODE])])]
    request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=timeout_ms)
    decided = given.decide(alter_partition_reassignments, given.image(*given.topic("orders")), request, RULES)
    assert decided.answer.error_code == TOO_LATE
    assert not decided.records


def test_a_request_in_which_nothing_is_left_to_do_needs_no_time() -> None:
    image = given.image(*given.topic("orders"))
    assert (
        given.decide(
            elect_leaders, image, ElectLeadersRequest(topic_partitions=[], timeout_ms=0), RULES
        ).answer.error_code
        == 0
    )
    twice = given.decide(
        create_partitions,
        image,
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="orders", count=3, assignments=None)] * 2,
            timeout_ms=0,
            validate_only=False,
        ),
    )
    assert [topic.error_code for topic in twice.answer.results] == [ErrorCode.INVALID_REQUEST]
