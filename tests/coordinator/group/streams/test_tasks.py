"""Tests sets of tasks, and the partitions at a member's endpoint, whose cases are those of Apache Kafka's
EndpointToPartitionsManagerTest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.group.streams.configured import ConfiguredSubtopology
from coordinator.group.streams.endpoints import endpoint_to_partitions
from coordinator.group.streams.tasks import NO_TASKS, TaskAssignment, TaskId, Tasks
from coordinator.group.streams.topology import InternalTopicInfo
from protocol.coordinator_records.streams_group import TaskIds
from protocol.messages.streams_group_heartbeat import Endpoint, TopicPartition

task_sets = st.sets(st.builds(TaskId, st.sampled_from("abc"), st.integers(0, 3)))


@given(task_sets, task_sets)
def test_tasks_are_a_set(left: set[TaskId], right: set[TaskId]) -> None:
    one, other = Tasks.of(left), Tasks.of(right)
    assert list(one) == sorted(left)
    assert list(one | other) == sorted(left | right)
    assert list(one - other) == sorted(left - right)
    assert list(one & other) == sorted(left & right)
    assert one.isdisjoint(other) == left.isdisjoint(right)
    assert (len(one), one.is_empty) == (len(left), not left)
    assert (one == other) == (left == right)
    assert hash(one) == hash(Tasks.of(sorted(left, reverse=True)))
    assert all(task in one for task in left)
    assert not any(task in one for task in right - left)
    assert Tasks.from_ids(one.ids(TaskIds)) == one


def test_task_ids_are_ordered() -> None:
    assert Tasks({"b": [2, 0], "a": [1], "c": []}).ids(TaskIds) == [
        TaskIds(subtopology_id="a", partitions=[1]),
        TaskIds(subtopology_id="b", partitions=[0, 2]),
    ]


def test_a_repeated_subtopology_adds_its_partitions() -> None:
    ids = [TaskIds(subtopology_id="a", partitions=[1, 1]), TaskIds(subtopology_id="a", partitions=[0])]
    assert Tasks.from_ids(ids) == Tasks({"a": [0, 1]})


def test_an_assignment_is_empty_without_any_task() -> None:
    one = Tasks({"a": [0]})
    assert TaskAssignment().is_empty
    assert not any(TaskAssignment(**{kind: one}).is_empty for kind in ("active", "standby", "warmup"))


ENDPOINT = Endpoint(host="localhost", port=9092)
SUBTOPOLOGIES = {
    "0": ConfiguredSubtopology(5, frozenset({"B", "A"})),
    "1": ConfiguredSubtopology(5, repartition_sources={"R": InternalTopicInfo("R", 5)}),
}


def partitions(**topics: list[int]) -> list[TopicPartition]:
    return [TopicPartition(topic=topic, partitions=indexes) for topic, indexes in topics.items()]


def test_an_endpoint_has_active_and_standby_partitions() -> None:
    assigned = TaskAssignment(Tasks({"0": [2, 0], "1": [1]}), Tasks({"0": [1]}), Tasks({"1": [0]}))
    found = endpoint_to_partitions(ENDPOINT, assigned, SUBTOPOLOGIES, {"A": 3, "B": 3, "R": 3})
    assert found.user_endpoint == ENDPOINT
    assert found.active_partitions == partitions(A=[0, 2], B=[0, 2], R=[1])
    assert found.standby_partitions == partitions(A=[1], B=[1], R=[0])


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"A": 2, "B": 5}, partitions(A=[0, 1], B=[0, 1, 2, 3, 4])),
        ({"A": 3, "B": 3}, partitions(A=[0, 1, 2], B=[0, 1, 2])),
        ({"B": 1}, partitions(B=[0])),
        ({}, []),
    ],
)
def test_topics_can_have_fewer_partitions_than_tasks(counts: dict[str, int], expected: list[TopicPartition]) -> None:
    assigned = TaskAssignment(Tasks({"0": range(5)}))
    found = endpoint_to_partitions(ENDPOINT, assigned, SUBTOPOLOGIES, counts)
    assert (found.active_partitions, found.standby_partitions) == (expected, [])


def test_a_subtopology_that_is_gone_has_no_partitions() -> None:
    assigned = TaskAssignment(Tasks({"7": [0]}))
    assert endpoint_to_partitions(ENDPOINT, assigned, SUBTOPOLOGIES, {"A": 3}).active_partitions == []
    assert endpoint_to_partitions(ENDPOINT, TaskAssignment(NO_TASKS), {}, {}).active_partitions == []
