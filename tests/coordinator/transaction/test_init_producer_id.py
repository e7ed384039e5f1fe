"""Tests InitProducerId: the producer id and epoch in each case, and the rejections."""

from __future__ import annotations

import pytest

from coordinator.transaction.state import State
from coordinator.transaction.transaction import LAST_CLIENT_EPOCH, MAX_EPOCH, Producer
from protocol.errors import ErrorCode
from tests.coordinator.driver import START_MS
from tests.coordinator.transaction.given import FIRST_PRODUCER_ID, ID, TIMEOUT_MS, A, Given, transaction

FRESH = Producer(FIRST_PRODUCER_ID, 0)


def test_an_unknown_id_gets_a_new_producer_id_at_epoch_0() -> None:
    given = Given()
    records, answer = given.init()
    assert answer == FRESH
    assert records == [
        transaction(State.EMPTY, FRESH)._replace(previous_producer_id=FIRST_PRODUCER_ID, timeout_ms=TIMEOUT_MS)
    ]


def test_an_unknown_id_takes_whatever_epoch_its_producer_expects() -> None:
    assert Given().init(Producer(99, 12)).answer == FRESH


def test_each_new_producer_bumps_the_epoch_and_may_change_the_timeout() -> None:
    given = Given()
    given.init()
    records, answer = given.init(timeout_ms=5_000)
    assert answer == Producer(FIRST_PRODUCER_ID, 1)
    assert [(transaction.timeout_ms, transaction.last_epoch) for transaction in records if transaction] == [(5_000, -1)]


@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_a_producer_that_expects_the_current_epoch_gets_the_next(state: State) -> None:
    given = Given()
    given.put(transaction(state, Producer(5, 3)))
    records, answer = given.init(Producer(5, 3))
    assert answer == Producer(5, 4)
    assert records == [transaction(State.EMPTY, Producer(5, 4), last_epoch=3)]


def test_asking_again_by_the_epoch_before_is_a_retry() -> None:
    given = Given()
    given.put(transaction(State.EMPTY, Producer(5, 4), last_epoch=3))
    assert given.init(Producer(5, 3)).answer == Producer(5, 4)
    assert given.init(Producer(5, 3)).answer == Producer(5, 4)


def test_the_epoch_before_is_fenced_once_another_producer_came() -> None:
    given = Given()
    given.put(transaction(State.EMPTY, Producer(5, 3)))
    given.init()
    assert given.init(Producer(5, 3)).answer is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("expected", [Producer(5, 2), Producer(5, 9), Producer(6, 3)])
def test_a_producer_that_was_taken_over_is_fenced(expected: Producer) -> None:
    given = Given()
    given.put(transaction(State.EMPTY, Producer(5, 3)))
    assert given.init(expected) == ([], ErrorCode.PRODUCER_FENCED)


def test_an_open_transaction_is_aborted_first_and_the_producer_asks_again() -> None:
    given = Given()
    given.put(transaction(State.ONGOING, Producer(5, 3)))
    records, answer = given.init()
    assert answer is ErrorCode.CONCURRENT_TRANSACTIONS
    assert records == [transaction(State.PREPARE_ABORT, Producer(5, 4), last_epoch=3, client_version=2)]
    given.write_markers()
    assert given.init().answer == Producer(5, 5)


def test_before_transactions_v2_an_aborted_one_forgets_the_epoch_before() -> None:
    given = Given(version=1)
    given.put(transaction(State.ONGOING, Producer(5, 3), last_epoch=2))
    records, answer = given.init()
    assert answer is ErrorCode.CONCURRENT_TRANSACTIONS
    assert records == [transaction(State.PREPARE_ABORT, Producer(5, 4))]
    given.write_markers()
    assert given.init(Producer(5, 3)).answer is ErrorCode.PRODUCER_FENCED
    assert given.init().answer == Producer(5, 5)


def test_a_fenced_producers_own_bump_aborts_its_open_transaction_too() -> None:
    given = Given()
    given.put(transaction(State.ONGOING, Producer(5, 3)))
    assert given.init(Producer(5, 3)).answer is ErrorCode.CONCURRENT_TRANSACTIONS
    given.write_markers()
    assert given.init(Producer(5, 3)).answer == Producer(5, 4)


def test_a_new_producer_id_comes_when_the_epochs_run_out() -> None:
    given = Given()
    given.put(transaction(State.COMPLETE_COMMIT, Producer(5, LAST_CLIENT_EPOCH)))
    records, answer = given.init()
    assert answer == FRESH
    assert records == [transaction(State.EMPTY, FRESH, previous_producer_id=5)]


def test_who_asks_for_a_new_producer_id_again_is_known_by_its_last_epoch() -> None:
    given = Given()
    given.put(transaction(State.EMPTY, Producer(5, LAST_CLIENT_EPOCH)))
    assert given.init(Producer(5, LAST_CLIENT_EPOCH)).answer == FRESH
    assert given.transaction.last_epoch == LAST_CLIENT_EPOCH
    assert given.init(Producer(5, LAST_CLIENT_EPOCH)).answer == FRESH


def test_an_exhausted_producer_that_was_taken_over_is_fenced() -> None:
    given = Given()
    given.put(transaction(State.EMPTY, Producer(5, LAST_CLIENT_EPOCH)))
    assert given.init(Producer(5, 7)).answer is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("version", [1, 2])
def test_fencing_works_with_the_epoch_that_clients_never_get(version: int) -> None:
    given = Given(version)
    given.put(transaction(State.ONGOING, Producer(5, LAST_CLIENT_EPOCH)))
    assert given.init().answer is ErrorCode.CONCURRENT_TRANSACTIONS
    assert given.transaction.producer == Producer(5, MAX_EPOCH)
    given.write_markers()
    answer = given.init().answer
    assert isinstance(answer, Producer)
    assert answer.producer_id >= FIRST_PRODUCER_ID


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001, 0x7FFFFFFF])
def test_a_timeout_out_of_bounds_is_refused(timeout_ms: int) -> None:
    assert Given().init(timeout_ms=timeout_ms) == ([], ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def test_nothing_is_written_while_no_producer_id_is_at_hand() -> None:
    given = Given()
    given.ids_at_hand = False
    assert given.init() == ([], ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert ID not in given.shard.transactions


def test_a_restarted_coordinator_does_not_know_the_epoch_before() -> None:
    given = Given()
    given.put(transaction(State.EMPTY, Producer(5, 4), last_epoch=3))
    given.restart()
    assert given.transaction == transaction(State.EMPTY, Producer(5, 4))
    assert given.init(Producer(5, 3)).answer is ErrorCode.PRODUCER_FENCED
    assert given.init(Producer(5, 4)).answer == Producer(5, 5)


def test_a_producer_may_start_over_what_is_left_of_a_transaction() -> None:
    given = Given()
    producer = given.init().answer
    assert isinstance(producer, Producer)
    given.add(producer, A)
    given.commit(producer)
    given.write_markers()
    given.now_ms += 9
    records, _ = given.init()
    assert [
        (transaction.partitions, transaction.started_ms, transaction.updated_ms)
        for transaction in records
        if transaction
    ] == [(frozenset(), -1, START_MS + 9)]
