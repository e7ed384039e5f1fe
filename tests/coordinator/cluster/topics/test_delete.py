"""Tests DeleteTopics, by name and by id."""

from __future__ import annotations

from collections.abc import Container

import pytest

from coordinator.cluster.image import Image
from coordinator.cluster.topics.delete import delete_topics
from coordinator.cluster.topics.names import EVERYTHING
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from protocol.metadata_records.topics import RemoveTopicRecord
from protocol.types import NO_UUID, Uuid
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import OPTIONS, TOPIC_ID

OTHER_ID = b"another-topic-id"
Results = list[tuple[str | None, Uuid, int]]


def by_name(*names: str) -> list[DeleteTopicState]:
    return [DeleteTopicState(name=name, topic_id=NO_UUID) for name in names]


def by_id(*ids: Uuid) -> list[DeleteTopicState]:
    return [DeleteTopicState(name=None, topic_id=topic_id) for topic_id in ids]


def orders() -> Image:
    return given.image(*given.topic("orders"))


def delete(
    *states: DeleteTopicState, deletable: Container[str] = EVERYTHING, describable: Container[str] = EVERYTHING
) -> given.Decision[DeleteTopicsResponse]:
    return given.decide(
        delete_topics,
        orders(),
        DeleteTopicsRequest(topics=list(states), timeout_ms=1000),
        OPTIONS,
        6,
        deletable,
        describable,
    )


def results(decided: given.Decision[DeleteTopicsResponse]) -> Results:
    return [(one.name, one.topic_id, one.error_code) for one in decided.answer.responses]


def test_a_topic_goes_by_its_name() -> None:
    decided = delete(*by_name("orders"))
    assert decided.records == [RemoveTopicRecord(topic_id=TOPIC_ID)]
    assert results(decided) == [("orders", TOPIC_ID, ErrorCode.NONE)]


def test_a_topic_goes_by_its_id_and_its_name_is_told() -> None:
    decided = delete(*by_id(TOPIC_ID))
    assert decided.records == [RemoveTopicRecord(topic_id=TOPIC_ID)]
    assert results(decided) == [("orders", TOPIC_ID, ErrorCode.NONE)]


def test_names_of_older_versions_are_names() -> None:
    decided = given.decide(
        delete_topics, orders(), DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1000), OPTIONS, 1
    )
    assert results(decided) == [("orders", TOPIC_ID, ErrorCode.NONE)]


@pytest.mark.parametrize(("states", "expected"), [
    (by_name("absent"), [("absent", NO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
    (by_id(OTHER_ID), [(None, OTHER_ID, ErrorCode.UNKNOWN_TOPIC_ID)]),
    (by_name("orders", "orders"), [("orders", NO_UUID, ErrorCode.INVALID_REQUEST)]),
    (by_id(TOPIC_ID, TOPIC_ID), [(None, TOPIC_ID, ErrorCode.INVALID_REQUEST)]),
    ([*by_id(TOPIC_ID), *by_name("orders")], [("orders", TOPIC_ID, ErrorCode.INVALID_REQUEST)]),
    ([DeleteTopicState(name=None, topic_id=NO_UUID)], [(None, NO_UUID, ErrorCode.INVALID_REQUEST)]),
    ([DeleteTopicState(name="orders", topic_id=TOPIC_ID)], [("orders", TOPIC_ID, ErrorCode.INVALID_REQUEST)]),
])  # fmt: skip
def test_what_cannot_be_deleted_stays(states: list[DeleteTopicState], expected: Results) -> None:
    decided = delete(*states)
    assert (decided.records, results(decided)) == ([], expected)


def test_who_may_not_delete_a_topic_is_told_so() -> None:
    decided = delete(*by_name("orders"), deletable=())
    assert results(decided) == [("orders", NO_UUID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]


def test_who_may_not_describe_a_topic_learns_neither_its_name_nor_whether_it_is_there() -> None:
    decided = delete(*by_id(TOPIC_ID), *by_name("absent"), deletable=(), describable=())
    assert results(decided) == [
        (None, TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("absent", NO_UUID, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]


@pytest.mark.parametrize(("version", "code"), [
    (2, ErrorCode.INVALID_REQUEST),
    (3, ErrorCode.TOPIC_DELETION_DISABLED),
])  # fmt: skip
def test_deletion_can_be_turned_off(version: int, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        given.decide(
            delete_topics,
            orders(),
            DeleteTopicsRequest(timeout_ms=1000),
            OPTIONS._replace(delete_topic_enable=False),
            version,
        )
    assert caught.value.code is code
