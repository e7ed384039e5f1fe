"""Tests the whole table of states, with runs that change state as in production."""

from __future__ import annotations

import pytest

from coordinator.share.batches import StateBatch
from coordinator.share_partition.run import Limits, Run, settled
from coordinator.share_partition.run_index import RunIndex
from coordinator.share_partition.states import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    DELAYED,
    MEANS,
    STORED,
    TERMINAL,
    AcknowledgeType,
    RecordState,
)
from protocol.errors import ErrorCode, KafkaError
from tests.coordinator.share_partition.given import share_partition

ALLOWED = {
    (AVAILABLE, ACQUIRED),
    (AVAILABLE, DELAYED),
    (DELAYED, AVAILABLE),
    (ACQUIRED, AVAILABLE),
    (ACQUIRED, ACKNOWLEDGED),
    (ACQUIRED, ARCHIVING),
    (ACQUIRED, ARCHIVED),
    (ARCHIVING, ARCHIVED),
}


@pytest.mark.parametrize("before", RecordState)
@pytest.mark.parametrize("after", RecordState)
def test_a_record_goes_where_the_table_says_and_nowhere_else(before: RecordState, after: RecordState) -> None:
    run = Run(0, 9, before, 1, "m")
    run.enter(RunIndex())
    if (before, after) in ALLOWED:
        run.begin(after, [])
        assert run.state is after
    else:
        with pytest.raises(AssertionError, match="cannot become"):
            run.begin(after, [])
        assert run.state is before


@pytest.mark.parametrize("before", RecordState)
def test_a_record_that_vanishes_is_archived_whatever_it_was(before: RecordState) -> None:
    run = Run(0, 9, before, 1, "m", 5)
    run.enter(RunIndex())
    run.archive()
    assert (run.state, run.member_id, run.lock_until_ms) == (ARCHIVED, "", 0)


def test_the_states_are_stored_under_kafkas_numbers() -> None:
    assert [(state.name, state.value) for state in RecordState if state in STORED] == [
        ("AVAILABLE", 0), ("ACQUIRED", 1), ("ACKNOWLEDGED", 2), ("ARCHIVING", 3), ("ARCHIVED", 4),
    ]  # fmt: skip
    assert {ACKNOWLEDGED, ARCHIVED} == TERMINAL


def test_acknowledgements_mean_what_kafka_has_them_mean() -> None:
    assert MEANS == {0: ARCHIVED, 1: ACKNOWLEDGED, 2: AVAILABLE, 3: ARCHIVED}
    assert int(AcknowledgeType.RENEW) == 4


@pytest.mark.parametrize(
    ("next_state", "count", "dead_letters", "result"),
    [
        (AVAILABLE, 4, False, AVAILABLE),
        (AVAILABLE, 5, False, ARCHIVED),
        (AVAILABLE, 6, False, ARCHIVED),
        (AVAILABLE, 4, True, AVAILABLE),
        (AVAILABLE, 5, True, ARCHIVING),
        (ACKNOWLEDGED, 5, False, ACKNOWLEDGED),
        (ACKNOWLEDGED, 5, True, ACKNOWLEDGED),
        (ARCHIVED, 1, False, ARCHIVED),
    ],
)
def test_what_was_delivered_too_often_is_given_up(
    next_state: RecordState, count: int, dead_letters: bool, result: RecordState
) -> None:
    limits = Limits(max_delivery_count=5, has_dead_letters=dead_letters)
    assert settled(next_state, count, limits) is result


@pytest.mark.parametrize("state", [-1, 5])
def test_a_state_that_no_batch_can_have_fails_the_share_partition(state: int) -> None:
    with pytest.raises(KafkaError) as refused:
        share_partition(batches=[StateBatch(0, 9, state, 1)])
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
