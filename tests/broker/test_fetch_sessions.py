"""Tests incremental fetch sessions: found by id and epoch, and evicted by Kafka's rules."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from broker.fetch import sessions as fetch_sessions
from broker.fetch.partition import FetchedPartition
from broker.fetch.request import ParsedFetch
from broker.fetch.sessions import INITIAL_EPOCH, MAX_EPOCH, MIN_EVICTION_AGE_MS, FetchSession, FetchSessions
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tests.broker.inprocess import Client, InProcess


@pytest.fixture
def sessions() -> FetchSessions:
    ids = count(1)
    return FetchSessions(slots=2, new_id=lambda: next(ids))


BY_NAME, BY_ID = 12, 13
TOPIC = b"\2t"


def request(*named: int, session: tuple[int, int] = (0, 0), version: int = BY_NAME, at: int = 0) -> ParsedFetch:
    """Returns a Fetch that names partitions, all with the same offset."""
    partitions = [FetchedPartition(TOPIC, index, at, 100) for index in named]
    return ParsedFetch(version, 1, 100, 0, 0, *session, partitions)


def forgetting(*indexes: int, session: tuple[int, int]) -> ParsedFetch:
    forgotten = [(TOPIC, index) for index in indexes]
    return ParsedFetch(BY_NAME, 1, 100, 0, 0, *session, [], forgotten)


def created(sessions: FetchSessions, partitions: int, now_ms: int) -> FetchSession:
    params = request(*range(partitions))
    session = sessions.create(partitions, params.uses_topic_ids, now_ms)
    assert session is not None
    session.update(params.named, ())
    return session


def test_a_session_goes_on_epoch_by_epoch(sessions: FetchSessions) -> None:
    session = created(sessions, 1, 0)
    for epoch in (1, 2):
        assert sessions.resume(request(session=(session.session_id, epoch)), epoch) is session
    assert session.last_used_ms == 2


def test_a_request_that_is_accepted_changes_the_session(sessions: FetchSessions) -> None:
    session = created(sessions, 2, 0)
    sessions.resume(request(1, 2, session=(session.session_id, 1), at=7), 0)
    assert [(one.index, one.fetch_offset) for one in session.partitions.values()] == [(0, 0), (1, 7), (2, 7)]
    sessions.resume(forgetting(0, 1, session=(session.session_id, 2)), 0)
    assert [one.index for one in session.partitions.values()] == [2]


def test_a_request_that_is_refused_changes_nothing(sessions: FetchSessions) -> None:
    session = created(sessions, 2, 0)
    for refused in (
        request(0, 5, session=(session.session_id, 2), at=7),
        request(0, 5, session=(session.session_id, 1), version=BY_ID, at=7),
        forgetting(0, session=(session.session_id, 0)),
    ):
        with pytest.raises(KafkaError):
            sessions.resume(refused, 9)
    assert [(one.index, one.fetch_offset) for one in session.partitions.values()] == [(0, 0), (1, 0)]
    assert (session.epoch, session.last_used_ms) == (1, 0)


def test_a_session_that_forgets_all_is_over(sessions: FetchSessions) -> None:
    session = created(sessions, 1, 0)
    assert sessions.resume(forgetting(0, session=(session.session_id, 1)), 0) is None
    assert not sessions.sessions


@pytest.mark.parametrize(
    ("session_id", "epoch", "by_id", "code"),
    [
        (9, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (1, 2, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_fetch_that_does_not_continue_its_session_is_told_why(
    sessions: FetchSessions, session_id: int, epoch: int, by_id: bool, code: ErrorCode
) -> None:
    created(sessions, 1, 0)
    with pytest.raises(KafkaError) as raised:
        sessions.find(session_id, epoch, by_id)
    assert raised.value.code is code


def test_epochs_wrap_to_one(sessions: FetchSessions) -> None:
    session = created(sessions, 1, 0)
    session.epoch = MAX_EPOCH
    sessions.resume(request(session=(session.session_id, MAX_EPOCH)), 0)
    assert session.epoch == 1


def test_a_fetch_without_partitions_opens_a_session_too(sessions: FetchSessions) -> None:
    assert sessions.create(0, False, 0) is not None


def test_young_sessions_are_not_evicted(sessions: FetchSessions) -> None:
    created(sessions, 1, 0)
    created(sessions, 1, 0)
    assert sessions.create(5, False, MIN_EVICTION_AGE_MS) is None


def test_a_consumer_s_session_makes_room_for_a_follower_s_however_young(sessions: FetchSessions) -> None:
    large, small = created(sessions, 9, 0), created(sessions, 3, 0)
    assert sessions.create(1, False, 0, is_privileged=True) is not None
    assert [*sessions.sessions] == [large.session_id, 3]
    assert small.session_id not in sessions.sessions


def test_a_follower_s_session_makes_room_for_a_larger_follower_s_alone(sessions: FetchSessions) -> None:
    for size in (2, 5):
        assert sessions.create(size, False, 0, is_privileged=True) is not None
    for session in sessions.sessions.values():
        session.last_used_ms = MIN_EVICTION_AGE_MS
        session.update(request(*range(2)).named, ())
    late_ms = MIN_EVICTION_AGE_MS + 1
    assert sessions.create(99, False, late_ms) is None
    assert sessions.create(9, False, MIN_EVICTION_AGE_MS, is_privileged=True) is None
    assert sessions.create(9, False, late_ms, is_privileged=True) is not None


def test_a_session_unused_for_long_makes_room(sessions: FetchSessions) -> None:
    old = created(sessions, 9, 0)
    young = created(sessions, 9, MIN_EVICTION_AGE_MS)
    assert sessions.create(1, False, MIN_EVICTION_AGE_MS + 1) is not None
    assert old.session_id not in sessions.sessions
    assert young.session_id in sessions.sessions


def test_a_smaller_session_makes_room_once_it_is_old_enough(sessions: FetchSessions) -> None:
    small, large = created(sessions, 1, 0), created(sessions, 9, 0)
    now_ms = MIN_EVICTION_AGE_MS + 1
    for session in (small, large):
        sessions.resume(request(session=(session.session_id, 1)), now_ms)
    assert sessions.create(1, False, now_ms) is None
    assert sessions.create(2, False, now_ms) is not None
    assert small.session_id not in sessions.sessions


def test_without_slots_every_fetch_is_whole() -> None:
    assert FetchSessions(0, lambda: 1).create(1, False, 0) is None


def test_what_the_client_was_told_already_is_no_news() -> None:
    partition = FetchedPartition(TOPIC, 0, 0, 100)
    partition.high_watermark, partition.log_start_offset = 5, 0
    assert partition.update_reported()
    assert not partition.update_reported()
    partition.log_start_offset = 1
    assert partition.update_reported()


def full(sessions: FetchSessions, monkeypatch: pytest.MonkeyPatch) -> FetchSession:
    monkeypatch.setattr(fetch_sessions, "MAX_PARTITIONS", 10)
    return created(sessions, 10, 0)


@pytest.mark.source_only
def test_partitions_of_all_sessions_together_are_bounded(
    sessions: FetchSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(sessions, monkeypatch)
    assert sessions.create(1, False, MIN_EVICTION_AGE_MS) is None
    assert sessions.create(11, False, 2 * MIN_EVICTION_AGE_MS) is None
    assert len(sessions.sessions) == 1
    assert sessions.create(1, False, MIN_EVICTION_AGE_MS + 1) is not None
    assert len(sessions.sessions) == 1


@pytest.mark.source_only
def test_a_session_that_grows_beyond_them_is_over(sessions: FetchSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    session = full(sessions, monkeypatch)
    assert sessions.resume(request(9, session=(session.session_id, 1)), 0) is session
    with pytest.raises(KafkaError) as raised:
        sessions.resume(request(10, session=(session.session_id, 2)), 0)
    assert raised.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not sessions.sessions


async def fetched(client: Client, session_id: int, epoch: int, *partitions: int) -> tuple[int, int]:
    """Returns the error and the session id of an answer."""
    named = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=100) for index in partitions]
    topics = [FetchTopic(topic="t", partitions=named)]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=epoch, topics=topics)
    answer = await client.ask(request, 12, FetchResponse)
    return answer.error_code, answer.session_id


@pytest.mark.source_only
async def test_a_client_whose_session_grew_too_large_is_served_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_sessions, "MAX_PARTITIONS", 3)
    async with InProcess(tmp_path) as served:
        await served.create_topic("t", 9)
        client = served.client()
        _, session_id = await fetched(client, 0, INITIAL_EPOCH, 0, 1, 2)
        assert session_id
        assert await fetched(client, session_id, 1, 3) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
        assert await fetched(client, 0, INITIAL_EPOCH, 0, 1, 2, 3) == (0, 0)
        assert not served.server.broker.fetches.sessions.sessions
