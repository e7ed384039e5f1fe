"""Tests CreatePartitions."""

from __future__ import annotations

import pytest

from coordinator.cluster.topics.create_partitions import create_partitions
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import NODE, partition


def grow(
    *topics: CreatePartitionsTopic, validate_only: bool = False
) -> tuple[given.Decision[CreatePartitionsResponse], list[tuple[int, str | None]]]:
    image = given.image(*given.topic("orders", 2), *given.topic("payments", 2, b"another topic's-"))
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=1000, validate_only=validate_only)
    decided = given.decide(create_partitions, image, request)
    return decided, [(result.error_code, result.error_message) for result in decided.answer.results]


def orders(count: int, *assignments: list[int], name: str = "orders") -> CreatePartitionsTopic:
    given_by_hand = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=given_by_hand or None)


def test_new_partitions_follow_the_old_ones() -> None:
    decided, results = grow(orders(4))
    assert decided.records == [partition(2), partition(3)]
    assert results == [(ErrorCode.NONE, None)]


def test_new_partitions_may_be_assigned_by_hand() -> None:
    decided, _ = grow(orders(3, [NODE]))
    assert decided.records == [partition(2)]


def test_a_validation_leaves_no_records() -> None:
    decided, results = grow(orders(4), validate_only=True)
    assert (decided.records, results) == ([], [(ErrorCode.NONE, None)])


@pytest.mark.parametrize(("topic", "code", "message"), [
    (orders(2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
    (orders(1), ErrorCode.INVALID_PARTITIONS,
     "The topic orders currently has 2 partition(s); 1 would not be an increase."),
    (orders(4, [NODE]), ErrorCode.INVALID_REPLICA_ASSIGNMENT,
     "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
    (orders(3, [7]), ErrorCode.INVALID_REPLICA_ASSIGNMENT,
     "The manual partition assignment includes broker 7, but no such broker is registered."),
    (CreatePartitionsTopic(name="absent", count=3, assignments=None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
     None),
])  # fmt: skip
def test_what_does_not_grow_is_told_why(topic: CreatePartitionsTopic, code: ErrorCode, message: str | None) -> None:
    decided, results = grow(topic)
    assert (decided.records, results) == ([], [(code, message)])


def test_an_assignment_has_the_replication_factor_of_the_topic() -> None:
    image = given.image(*given.topic("orders", 1, replicas=(NODE, 2)))
    request = CreatePartitionsRequest(topics=[orders(2, [NODE])], timeout_ms=1000, validate_only=False)
    (result,) = given.decide(create_partitions, image, request).answer.results
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "not consistent with previous partitions, which have 2 replica(s)" in (result.error_message or "")


def test_a_topic_named_twice_does_not_grow() -> None:
    decided, results = grow(orders(3), orders(4))
    assert (decided.records, results) == ([], [(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")])


TOO_LARGE = (ErrorCode.POLICY_VIOLATION, "Excessively large number of additional partitions per request.")


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("topic", [
    orders(10_003),
    orders(2**31 - 1),
    orders(10_003, *[[NODE]] * 10_001),
])  # fmt: skip
def test_more_than_ten_thousand_partitions_are_refused(topic: CreatePartitionsTopic, validate_only: bool) -> None:
    decided, results = grow(topic, validate_only=validate_only)
    assert (list(decided.records), results) == ([], [TOO_LARGE])


def test_ten_thousand_partitions_are_not_too_many() -> None:
    decided, results = grow(orders(10_002))
    assert (len(decided.records), results) == (10_000, [(ErrorCode.NONE, None)])


def test_topics_that_get_more_than_ten_thousand_partitions_together_do_not_grow() -> None:
    decided, results = grow(orders(6_002), orders(4_003, name="payments"))
    assert (list(decided.records), results) == ([], [TOO_LARGE, TOO_LARGE])


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_coordinators_topic_keeps_its_number_of_partitions(name: str, count: int) -> None:
    image = given.image(*given.topic(name, 2))
    request = CreatePartitionsRequest(topics=[orders(count, name=name)], timeout_ms=1000, validate_only=False)
    decided = given.decide(create_partitions, image, request)
    (result,) = decided.answer.results
    assert (decided.records, result.error_code) == ([], ErrorCode.INVALID_PARTITIONS)
    assert f"{name} can't get more partitions" in str(result.error_message)
