"""Tests a fetcher: its requests, and the follower's steps after answers, partition by partition."""

from __future__ import annotations

import pytest

from coordinator.replication.fetcher import EARLIEST, LATEST, Fetcher, FetcherOptions, SessionEnded
from coordinator.replication.states import FetchState
from coordinator.replication.steps import Correct, FollowerStep, LeaderError, Replicate
from coordinator.replication.truncation import CutTo, RestartAt
from protocol.errors import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.types import TopicPartition
from tests.coordinator.replication.leading import (
    BACKOFF_MS,
    EPOCH,
    ME,
    FollowerLogStub,
    a_fetcher,
    answer,
    data,
    follow,
    forgotten,
    key,
    requested,
)

OTHER_ERRORS = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
]


def only(steps: list[FollowerStep[FollowerLogStub]]) -> FollowerStep[FollowerLogStub]:
    (step,) = steps
    return step


def offsets(offset: int, code: ErrorCode = ErrorCode.NONE, index: int = 0) -> ListOffsetsResponse:
    answered = ListOffsetsPartitionResponse(partition_index=index, error_code=int(code), offset=offset)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[answered])])


def timestamps(fetcher: Fetcher[FollowerLogStub]) -> list[int]:
    """Returns the timestamps in the next ListOffsets; none if no request is due."""
    request = fetcher.offsets_request(ME.broker_id)
    return [] if request is None else [one.timestamp for topic in request.topics for one in topic.partitions]


def test_a_request_says_who_follows_from_where_and_in_which_epochs() -> None:
    fetcher = a_fetcher()
    follow(fetcher, FollowerLogStub(30, [(2, 0), (4, 10)], start=3))
    request = fetcher.request(0, ME)
    assert request is not None
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (1, 70)
    partition = requested(request)[0]
    assert (partition.fetch_offset, partition.log_start_offset) == (30, 3)
    assert (partition.current_leader_epoch, partition.last_fetched_epoch) == (EPOCH, 4)


def test_batches_go_to_the_log_with_the_leader_s_watermarks() -> None:
    fetcher = a_fetcher()
    log = follow(fetcher, FollowerLogStub())
    fetcher.request(0, ME)
    step = only(fetcher.fetched(answer(data(records=b"batches", high_watermark=4, log_start=2)), 0))
    assert isinstance(step, Replicate)
    assert (bytes(step.records), step.high_watermark, step.log_start_offset) == (b"batches", 4, 2)
    log.log_end_offset = 7
    fetcher.replicated(step.partition)
    assert requested(fetcher.request(0, ME))[0].fetch_offset == 7


def test_an_empty_answer_keeps_the_last_fetched_epoch() -> None:
    """The case of KAFKA-15510."""
    fetcher = a_fetcher()
    follow(fetcher, FollowerLogStub(8, [(3, 0)]))
    fetcher.request(0, ME)
    step = only(fetcher.fetched(answer(data(high_watermark=8)), 0))
    fetcher.replicated(step.partition)
    fetcher.session.restart()
    assert requested(fetcher.request(0, ME))[0].last_fetched_epoch == 3


def test_a_diverging_answer_cuts_the_log_and_nothing_else() -> None:
    """The cases of KAFKA-13141 and KAFKA-14704: its watermarks are ignored."""
    fetcher = a_fetcher()
    log = follow(fetcher, FollowerLogStub(20, [(3, 0), (4, 15)]))
    fetcher.request(0, ME)
    diverged = data(records=b"batches", high_watermark=18, diverging=(3, 17))
    step = only(fetcher.fetched(answer(diverged), 0))
    assert step == Correct(step.partition, CutTo(15))
    assert forgotten(fetcher.request(0, ME)) == [0], "it is not fetched while a thread is at its log"
    fetcher.fetched(answer(), 0)
    log.log_end_offset, log.epochs = 15, [(3, 0)]
    fetcher.corrected(step.partition)
    partition = requested(fetcher.request(0, ME))[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (15, 3)


def test_a_log_without_epochs_is_cut_at_its_high_watermark_first() -> None:
    fetcher = a_fetcher()
    log = FollowerLogStub(20, [])
    log.high_watermark = 12
    correction = fetcher.follow(key(), TopicPartition("t", 0), log, EPOCH)
    assert correction is not None
    assert correction.correction == CutTo(12)
    assert fetcher.request(0, ME) is None


@pytest.mark.parametrize("code", OTHER_ERRORS)
def test_after_an_error_a_partition_pauses_and_others_go_on(code: ErrorCode) -> None:
    fetcher = a_fetcher()
    follow(fetcher, FollowerLogStub())
    follow(fetcher, FollowerLogStub(), 1)
    fetcher.request(0, ME)
    reported, replicated = fetcher.fetched(answer(data(0, code), data(1, records=b"x")), 0)
    assert isinstance(reported, LeaderError)
    assert reported.code is code
    assert isinstance(replicated, Replicate)
    fetcher.replicated(replicated.partition)
    request = fetcher.request(BACKOFF_MS - 1, ME)
    assert forgotten(request) == [0]
    fetcher.fetched(answer(), 0)
    assert fetcher.next_ready_ms() == BACKOFF_MS
    assert 0 in requested(fetcher.request(BACKOFF_MS, ME))


def test_a_fenced_partition_waits_for_the_next_leader_epoch() -> None:
    fetcher = a_fetcher()
    log = follow(fetcher, FollowerLogStub())
    fetcher.request(0, ME)
    step = only(fetcher.fetched(answer(data(0, ErrorCode.FENCED_LEADER_EPOCH)), 0))
    assert step.partition.state is FetchState.FAILED
    fetcher.request(0, ME)
    fetcher.fetched(answer(), 0)
    assert fetcher.request(1 << 40, ME) is None
    follow(fetcher, log, epoch=EPOCH)
    assert fetcher.request(1 << 40, ME) is None, "the same epoch is no news"
    follow(fetcher, log, epoch=EPOCH + 1)
    assert requested(fetcher.request(0, ME))[0].current_leader_epoch == EPOCH + 1


def test_an_answer_of_a_former_epoch_is_ignored() -> None:
    fetcher = a_fetcher()
    log = follow(fetcher, FollowerLogStub())
    fetcher.request(0, ME)
    follow(fetcher, log, epoch=EPOCH + 1)
    assert fetcher.fetched(answer(data(records=b"batches")), 0) == []
    assert requested(fetcher.request(0, ME))[0].current_leader_epoch == EPOCH + 1


def test_an_answer_for_another_offset_is_ignored() -> None:
    fetcher = a_fetcher()
    log = follow(fetcher, FollowerLogStub(9))
    fetcher.request(0, ME)
    log.log_end_offset = 4
    assert fetcher.fetched(answer(data(records=b"batches")), 0) == []


def test_a_partition_that_is_led_here_by_now_gets_nothing_more() -> None:
    fetcher = a_fetcher()
    follow(fetcher, FollowerLogStub())
    fetcher.request(0, ME)
    fetcher.unfollow(key())
    assert fetcher.fetched(answer(data(records=b"batches")), 0) == []
    assert forgotten(fetcher.request(0, ME)) == [0]
    fetcher.fetched(answer(), 0)
    assert fetcher.request(0, ME) is None


def test_without_an_answer_all_pause_and_the_session_begins_anew() -> None:
    fetcher = a_fetcher()
    follow(fetcher, FollowerLogStub())
    follow(fetcher, FollowerLogStub(), 1)
    fetcher.request(0, ME)
    fetcher.fetched(answer(data(0), data(1)), 0)
    fetcher.request(0, ME)
    fetcher.unanswered(10)
    assert fetcher.request(10, ME) is None
    request = fetcher.request(10 + BACKOFF_MS, ME)
    assert request is not None
    assert request.session_epoch == 0
    assert sorted(requested(request)) == [0, 1]


def test_a_session_s_error_says_so() -> None:
    fetcher = a_fetcher()
    follow(fetcher, FollowerLogStub())
    fetcher.request(0, ME)
    with pytest.raises(SessionEnded, match="FETCH_SESSION_ID_NOT_FOUND"):
        fetcher.fetched(answer(code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND), 0)


def out_of_range(log: FollowerLogStub) -> Fetcher[FollowerLogStub]:
    """Returns a fetcher whose leader doesn't have the offset at the log's end."""
    fetcher = a_fetcher()
    follow(fetcher, log)
    fetcher.request(0, ME)
    assert fetcher.fetched(answer(data(0, ErrorCode.OFFSET_OUT_OF_RANGE)), 0) == []
    return fetcher


def test_a_leader_that_ends_earlier_has_the_log_cut_there() -> None:
    fetcher = out_of_range(FollowerLogStub(20))
    assert timestamps(fetcher) == [LATEST]
    step = only(fetcher.offsets_listed(offsets(12), 0))
    assert step == Correct(step.partition, CutTo(12))
    assert timestamps(fetcher) == []


def test_a_leader_that_begins_later_has_the_log_begin_there() -> None:
    fetcher = out_of_range(FollowerLogStub(20))
    assert fetcher.offsets_listed(offsets(90), 0) == []
    assert timestamps(fetcher) == [EARLIEST]
    step = only(fetcher.offsets_listed(offsets(50), 0))
    assert step == Correct(step.partition, RestartAt(50))


def test_a_leader_that_has_it_by_now_is_fetched_from_again() -> None:
    fetcher = out_of_range(FollowerLogStub(20))
    fetcher.offsets_listed(offsets(90), 0)
    assert fetcher.offsets_listed(offsets(0), 0) == []
    assert timestamps(fetcher) == []
    fetcher.session.restart()
    assert requested(fetcher.request(0, ME))[0].fetch_offset == 20


@pytest.mark.parametrize(
    ("response", "state"),
    [
        (offsets(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), FetchState.DELAYED),
        (offsets(-1, ErrorCode.FENCED_LEADER_EPOCH), FetchState.FAILED),
        (offsets(-1), FetchState.DELAYED),
        (offsets(-1, ErrorCode.OFFSET_OUT_OF_RANGE), FetchState.DELAYED),
    ],
)
def test_offsets_that_the_leader_does_not_tell(response: ListOffsetsResponse, state: FetchState) -> None:
    step = only(out_of_range(FollowerLogStub(20)).offsets_listed(response, 0))
    assert step.partition.state is state


def test_offsets_that_are_missing_in_the_answer_are_asked_for_after_a_pause() -> None:
    fetcher = out_of_range(FollowerLogStub(20))
    assert fetcher.offsets_listed(ListOffsetsResponse(topics=[]), 5) == []
    assert fetcher.next_ready_ms() == 5 + BACKOFF_MS


def test_a_diverging_epoch_that_ends_nowhere_is_an_error() -> None:
    fetcher = a_fetcher()
    follow(fetcher, FollowerLogStub(20))
    fetcher.request(0, ME)
    step = only(fetcher.fetched(answer(data(diverging=(3, -1))), 0))
    assert isinstance(step, LeaderError)
    assert step.partition.state is FetchState.DELAYED


def test_how_a_step_of_a_former_epoch_ended_does_not_matter() -> None:
    fetcher = a_fetcher()
    log = follow(fetcher, FollowerLogStub(20))
    fetcher.request(0, ME)
    step = only(fetcher.fetched(answer(data(diverging=(3, 12))), 0))
    follow(fetcher, log, epoch=EPOCH + 1)
    fetcher.fail(step.partition)
    assert requested(fetcher.request(0, ME))[0].current_leader_epoch == EPOCH + 1


def test_a_throttled_partition_is_left_out_while_it_is_not_in_sync() -> None:
    throttled = {0}
    fetcher: Fetcher[FollowerLogStub] = Fetcher(
        lambda: FetcherOptions(backoff_ms=BACKOFF_MS), lambda partition: partition.key.partition in throttled
    )
    log = follow(fetcher, FollowerLogStub())
    follow(fetcher, FollowerLogStub(), 1)
    assert requested(fetcher.request(0, ME)).keys() == {1}
    throttled.clear()
    fetcher.fetched(answer(data(1)), 0)
    assert 0 in requested(fetcher.request(BACKOFF_MS, ME)), "after a pause"
    throttled.add(0)
    step = only(fetcher.fetched(answer(data(records=b"batches", high_watermark=4)), 0))
    log.log_end_offset = 4
    fetcher.replicated(step.partition)
    assert 0 in requested(fetcher.request(BACKOFF_MS, ME)), "it has all that is committed"
    step = only(fetcher.fetched(answer(data(records=b"batches", high_watermark=9)), 0))
    log.log_end_offset = 8
    fetcher.replicated(step.partition)
    assert forgotten(fetcher.request(BACKOFF_MS, ME)) == [0]


def test_while_all_are_throttled_nothing_is_asked_for() -> None:
    fetcher: Fetcher[FollowerLogStub] = Fetcher(lambda: FetcherOptions(backoff_ms=BACKOFF_MS), lambda _: True)
    follow(fetcher, FollowerLogStub())
    assert fetcher.request(0, ME) is None
    assert fetcher.next_ready_ms() == BACKOFF_MS
