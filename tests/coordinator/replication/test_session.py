"""Tests the follower's side of a fetch session: the content of requests, and the effects of answers (KIP-227)."""

from __future__ import annotations

import pytest

from coordinator.replication.session import MAX_EPOCH, FollowerSession
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition
from tests.coordinator.replication.leading import SESSION, answer, data, key


def at(index: int, offset: int = 0) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1)


def named(session: FollowerSession) -> tuple[int, int, list[int], list[int]]:
    """Returns (id, epoch, fetched partitions, forgotten partitions) of the next request."""
    fetch = session.request()
    return (
        fetch.session_id,
        fetch.session_epoch,
        [one.partition for topic in fetch.topics for one in topic.partitions],
        [index for topic in fetch.forgotten for index in topic.partitions],
    )


@pytest.fixture
def session() -> FollowerSession:
    """Returns a session with partitions 0 and 1, which the leader has granted."""
    session = FollowerSession()
    session.put(key(0), at(0))
    session.put(key(1), at(1))
    assert named(session) == (0, 0, [0, 1], [])
    assert session.accept(answer(data(0), data(1))) is None
    return session


def test_a_request_of_a_session_names_what_has_changed(session: FollowerSession) -> None:
    session.put(key(0), at(0, 5))
    session.put(key(1), at(1))
    assert named(session) == (SESSION, 1, [0], [])
    assert session.accept(answer()) is None
    assert named(session) == (SESSION, 2, [], [])


def test_a_partition_that_is_dropped_is_forgotten_once(session: FollowerSession) -> None:
    session.drop(key(0))
    assert named(session) == (SESSION, 1, [], [0])
    session.accept(answer())
    assert named(session) == (SESSION, 2, [], [])


def test_a_partition_that_comes_back_before_the_request_is_not_forgotten(session: FollowerSession) -> None:
    session.drop(key(0))
    session.put(key(0), at(0, 9))
    assert named(session) == (SESSION, 1, [0], [])


def test_what_was_read_last_is_fetched_last_in_a_full_request(session: FollowerSession) -> None:
    session.put(key(0), at(0, 5))
    session.restart()
    assert named(session) == (SESSION, 0, [1, 0], [])


def test_a_leader_without_room_for_sessions_gets_full_requests(session: FollowerSession) -> None:
    assert session.accept(answer(session_id=0)) is None
    assert named(session) == (0, 0, [0, 1], [])
    assert session.accept(answer(data(0), data(1), session_id=0)) is None
    assert named(session) == (0, 0, [0, 1], [])


def test_an_unknown_session_begins_anew(session: FollowerSession) -> None:
    named(session)
    assert session.accept(answer(code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)) == "FETCH_SESSION_ID_NOT_FOUND"
    assert named(session) == (0, 0, [0, 1], [])


def test_after_another_error_the_next_request_ends_the_session(session: FollowerSession) -> None:
    named(session)
    assert session.accept(answer(code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)) == "INVALID_FETCH_SESSION_EPOCH"
    assert named(session) == (SESSION, 0, [0, 1], [])


def test_an_answer_with_partitions_of_somebody_else_is_refused(session: FollowerSession) -> None:
    named(session)
    assert session.accept(answer(data(2))) is not None
    assert session.is_full


def test_an_answer_that_has_a_partition_twice_is_refused(session: FollowerSession) -> None:
    named(session)
    assert session.accept(answer(data(0), data(0))) is not None
    assert session.is_full


def test_a_full_answer_that_lacks_partitions_is_refused() -> None:
    session = FollowerSession()
    session.put(key(0), at(0))
    session.put(key(1), at(1))
    named(session)
    assert session.accept(answer(data(0))) is not None
    assert session.accept(answer(throttle_ms=1)) is None, "a throttled follower gets nothing, and asks again"
    assert session.is_full


def test_the_epoch_of_a_session_begins_anew_after_the_last(session: FollowerSession) -> None:
    session._epoch = MAX_EPOCH
    assert session.accept(answer()) is None
    assert named(session)[:2] == (SESSION, 1)
