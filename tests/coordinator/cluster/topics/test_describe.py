"""Tests DescribeTopicPartitions: page by page, in order."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.cluster.image import Image
from coordinator.cluster.topics.describe import describe_topic_partitions
from protocol.errors import ErrorCode
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import LISTENER, NODE

B_ID = b"id-of-topic-b---"
Page = list[tuple[str | None, int, list[int]]]


def two_topics() -> Image:
    return given.image(*given.topic("b", 2, B_ID), *given.topic("a", 3))


def ask(*topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in topics],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def page(response: DescribeTopicPartitionsResponse) -> tuple[Page, tuple[str, int] | None]:
    topics = [
        (topic.name, topic.error_code, [one.partition_index for one in topic.partitions]) for topic in response.topics
    ]
    cursor = response.next_cursor
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


def described(*arguments: Any) -> DescribeTopicPartitionsResponse:
    """Returns the response once all work is done."""
    work = describe_topic_partitions(*arguments)
    while True:
        try:
            next(work)
        except StopIteration as ended:
            response: DescribeTopicPartitionsResponse = ended.value
            return response


def describe(request: DescribeTopicPartitionsRequest) -> tuple[Page, tuple[str, int] | None]:
    return page(described(two_topics(), request, LISTENER))


def test_all_topics_come_in_the_order_of_their_names() -> None:
    assert describe(ask()) == ([("a", 0, [0, 1, 2]), ("b", 0, [0, 1])], None)


@pytest.mark.parametrize(("limit", "cursor", "topics", "next_cursor"), [
    (2, None, [("a", 0, [0, 1])], ("a", 2)),
    (2, ("a", 2), [("a", 0, [2]), ("b", 0, [0])], ("b", 1)),
    (3, None, [("a", 0, [0, 1, 2])], ("b", 0)),
    (2000, ("b", 1), [("b", 0, [1])], None),
    (0, ("b", 0), [("b", 0, [0])], ("b", 1)),
    (2000, ("aa", 0), [("b", 0, [0, 1])], None),
])  # fmt: skip
def test_a_page_ends_at_the_limit_and_its_cursor_begins_the_next(
    limit: int, cursor: tuple[str, int] | None, topics: Page, next_cursor: tuple[str, int] | None
) -> None:
    assert describe(ask(limit=limit, cursor=cursor)) == (topics, next_cursor)


def test_a_topic_that_is_not_there_is_told_so_when_it_was_named() -> None:
    topics, _ = describe(ask("b", "absent", "bad name"))
    assert topics == [
        ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
        ("b", ErrorCode.NONE, [0, 1]),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION, []),
    ]


@pytest.mark.parametrize("cursor", [("zz", 0), ("a", -1)])
def test_a_cursor_that_points_nowhere_is_an_invalid_request(cursor: tuple[str, int]) -> None:
    assert describe(ask("a", "b", cursor=cursor)) == (
        [("a", ErrorCode.INVALID_REQUEST, []), ("b", ErrorCode.INVALID_REQUEST, [])],
        None,
    )


def test_a_request_that_is_refused_has_no_name_looked_at() -> None:
    refused = described(two_topics(), ask("__consumer_offsets", cursor=("zz", 0)), LISTENER)
    absent = described(two_topics(), ask("__consumer_offsets"), LISTENER)
    assert [topic.is_internal for answer in (refused, absent) for topic in answer.topics] == [False, True]


def test_what_may_not_be_described_is_named_only_to_who_named_it() -> None:
    image = two_topics()
    named = described(image, ask("a", "b"), LISTENER, lambda name: name == "b")
    assert page(named)[0] == [("b", 0, [0, 1]), ("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])]
    every = described(image, ask(), LISTENER, lambda name: name == "b")
    assert page(every)[0] == [("b", 0, [0, 1])]


def test_a_leader_that_is_not_on_the_listener_is_none() -> None:
    response = described(two_topics(), ask("a"), "INTERNAL")
    assert {one.leader_id for one in response.topics[0].partitions} == {-1}
    assert response.topics[0].partitions[0].offline_replicas == [NODE]
