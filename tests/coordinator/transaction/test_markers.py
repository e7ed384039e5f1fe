"""Tests the marker writer: the markers that it gets, when, and what follows once they are written."""

from __future__ import annotations

from coordinator.engine.result import Ticket
from coordinator.transaction.markers import Markers
from coordinator.transaction.settings import RETRY_MS
from coordinator.transaction.state import State
from coordinator.transaction.transaction import Producer
from protocol.errors import ErrorCode
from tests.coordinator.transaction.given import ID, PRODUCER, A, B, Given, transaction

COMMIT_A = Markers(ID, 5, 4, True, 2, (A,))


def ongoing(*names: str) -> Given:
    given = Given()
    for name in names or (ID,):
        given.put(transaction(State.ONGOING)._replace(transactional_id=name))
    return given


def test_without_work_it_waits() -> None:
    given = ongoing()
    assert given.write_on() == ([], None)
    assert given.markers() is None


def test_a_decision_hands_it_the_markers() -> None:
    given = ongoing()
    given.write_on()
    given.commit(PRODUCER)
    assert given.markers() == [COMMIT_A]


def test_an_abort_before_transactions_v2_keeps_the_epoch() -> None:
    given = ongoing()
    given.write_on()
    given.abort(PRODUCER, version=0)
    assert given.markers() == [Markers(ID, 5, 3, False, 0, (A,))]


def test_what_was_decided_while_it_was_busy_is_there_when_it_asks() -> None:
    given = ongoing(ID, "other")
    given.write_on()
    given.commit(PRODUCER)
    assert given.markers() == [COMMIT_A]
    given.abort(PRODUCER, name="other")
    records, work = given.write_on({ID: [A]})
    assert [transaction.state for transaction in records if transaction] == [State.COMPLETE_COMMIT]
    assert work == [Markers("other", 5, 4, False, 2, (A,))]


def test_the_transaction_is_complete_only_when_all_partitions_have_a_marker() -> None:
    given = ongoing()
    given.put(transaction(State.ONGOING, partitions=frozenset({A, B})))
    given.write_on()
    given.commit(PRODUCER)
    assert given.write_on({ID: [B]}) == ([], None)
    assert given.transaction.state is State.PREPARE_COMMIT
    assert given.commit(PRODUCER).answer is ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_marker_that_failed_comes_round_again() -> None:
    given = ongoing()
    given.put(transaction(State.ONGOING, partitions=frozenset({A, B})))
    given.write_on()
    given.commit(PRODUCER)
    given.write_on({ID: [B]})
    given.pass_time(RETRY_MS - 1)
    assert given.markers() is None
    given.pass_time(1)
    assert given.markers() == [COMMIT_A]
    assert [transaction.state for transaction in given.write_on({ID: [A]}).records if transaction] == [
        State.COMPLETE_COMMIT
    ]


def test_markers_that_are_written_but_not_committed_are_not_asked_for_again() -> None:
    given = ongoing(ID, "other")
    given.write_on()
    given.commit(PRODUCER)
    given.under_way.add(ID)
    assert given.write_on() == ([], None)
    given.commit(PRODUCER, name="other")
    assert given.markers() == [COMMIT_A._replace(transactional_id="other")]
    given.under_way.clear()
    assert [transaction.state for transaction in given.markers_written({ID: [A]}).records if transaction] == [
        State.COMPLETE_COMMIT
    ]


def test_a_marker_that_was_not_committed_comes_round_again() -> None:
    given = ongoing()
    given.write_on()
    given.commit(PRODUCER)
    given.under_way.add(ID)
    given.write_on()
    given.under_way.clear()
    given.markers_written({ID: []})
    given.pass_time(RETRY_MS)
    assert given.markers() == [COMMIT_A]


def test_a_marker_that_failed_holds_no_other_transaction_up() -> None:
    given = ongoing(ID, "other")
    given.write_on()
    given.commit(PRODUCER)
    given.write_on({ID: []})
    given.commit(PRODUCER, name="other")
    assert given.markers() == [COMMIT_A._replace(transactional_id="other")]


def test_what_failed_while_others_came_waits_for_its_time() -> None:
    given = ongoing(ID, "other")
    given.write_on()
    given.commit(PRODUCER)
    given.commit(PRODUCER, name="other")
    assert given.write_on({ID: []}).answer == [COMMIT_A._replace(transactional_id="other")]
    given.pass_time(RETRY_MS)
    answer = given.write_on({"other": [A]}).answer
    assert answer == [COMMIT_A]


def test_after_an_error_it_begins_with_all_that_is_left() -> None:
    given = ongoing(ID, "other")
    given.commit(PRODUCER)
    given.write_on()
    assert given.write_on().answer == [COMMIT_A]


def test_a_completion_that_could_not_be_written_is_tried_again() -> None:
    given = ongoing()
    given.commit(PRODUCER)
    given.write_on()
    given.shard.write_on({ID: [A]}, frozenset(), Ticket(), given.now_ms)  # its records are lost
    again = given.write_on({ID: [A]})
    assert [transaction.state for transaction in again.records if transaction] == [State.COMPLETE_COMMIT]


def test_a_restarted_coordinator_writes_the_markers_of_what_was_decided() -> None:
    given = Given()
    given.put(transaction(State.PREPARE_ABORT, Producer(5, 4), client_version=2))
    given.restart()
    records, work = given.write_on()
    assert (records, work) == ([], [Markers(ID, 5, 4, False, 2, (A,))])
    assert [transaction.state for transaction in given.write_on({ID: [A]}).records if transaction] == [
        State.COMPLETE_ABORT
    ]


def test_a_restarted_coordinator_completes_what_has_no_partition() -> None:
    given = Given()
    given.put(transaction(State.PREPARE_ABORT, partitions=frozenset()))
    given.restart()
    assert [transaction.state for transaction in given.write_on().records if transaction] == [State.COMPLETE_ABORT]


def test_markers_of_a_transaction_that_is_gone_are_nobodys() -> None:
    given = ongoing()
    assert given.write_on({"unknown": [A]}) == ([], None)
