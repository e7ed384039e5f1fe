"""Tests requests while the markers of a transaction are being written: most must wait, whatever their producer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.transaction.state import State
from coordinator.transaction.transaction import LAST_CLIENT_EPOCH, Producer
from protocol.errors import ErrorCode
from tests.coordinator.transaction.given import FIRST_PRODUCER_ID, ID, PRODUCER, A, B, Given, Taken, transaction

Request = Callable[[Given, Producer], Taken]

CONCURRENT, FENCED, OTHER_ID = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)
CURRENT = Producer(5, 4)
"""The producer of the transactions under test, according to the answer of EndTxn v5."""

NOT_CURRENT = [Producer(5, 3), Producer(5, 1), Producer(5, 9), Producer(6, 4), Producer(-1, -1)]

WAIT_FIRST: list[Request] = [
    lambda given, producer: given.commit(producer),
    lambda given, producer: given.abort(producer),
    lambda given, producer: given.add(producer, B),
    lambda given, producer: given.add(producer, A, version=0),
    lambda given, producer: given.init(producer),
]
CHECK_PRODUCER_FIRST: list[Request] = [
    lambda given, producer: given.commit(producer, version=0),
    lambda given, producer: given.abort(producer, version=0),
    lambda given, producer: given.verify(producer, A),
]
STATES = [State.PREPARE_COMMIT, State.PREPARE_ABORT]
each_state = pytest.mark.parametrize("state", STATES, ids=[state.text for state in STATES])


def ending(state: State) -> Given:
    given = Given()
    given.put(transaction(state, CURRENT, client_version=2))
    return given


@each_state
@pytest.mark.parametrize(
    "request_of", WAIT_FIRST, ids=["commit", "abort", "add partitions", "add partitions v1", "init producer id"]
)
@pytest.mark.parametrize("producer", [CURRENT, *NOT_CURRENT], ids=str)
def test_any_producer_waits_for_the_markers(state: State, request_of: Request, producer: Producer) -> None:
    assert request_of(ending(state), producer) == ([], CONCURRENT)


@each_state
def test_a_producer_that_starts_waits_for_the_markers(state: State) -> None:
    assert ending(state).init() == ([], CONCURRENT)


@each_state
@pytest.mark.parametrize("request_of", CHECK_PRODUCER_FIRST, ids=["commit v1", "abort v1", "verify"])
def test_v1_and_brokers_learn_of_another_producer_first(state: State, request_of: Request) -> None:
    given = ending(state)
    assert request_of(given, CURRENT) == ([], CONCURRENT)
    assert request_of(given, PRODUCER) == ([], FENCED)
    assert request_of(given, Producer(6, 4)) == ([], OTHER_ID)


@pytest.mark.parametrize("committed", [True, False], ids=["after a commit", "after an abort"])
def test_the_producer_of_the_answer_ends_its_next_transaction_after_the_markers(committed: bool) -> None:
    given = Given()
    given.put(transaction(State.ONGOING, client_version=2))
    answer = (given.commit if committed else given.abort)(PRODUCER).answer
    assert answer == CURRENT
    assert given.abort(CURRENT) == ([], CONCURRENT)
    given.write_markers()
    assert given.abort(CURRENT).answer == Producer(5, 5)


def test_a_producer_id_that_is_yet_to_come_waits_for_the_markers() -> None:
    given = Given()
    given.put(transaction(State.ONGOING, Producer(5, LAST_CLIENT_EPOCH), client_version=2))
    new = Producer(FIRST_PRODUCER_ID, 0)
    assert given.commit(Producer(5, LAST_CLIENT_EPOCH)).answer == new
    assert given.add(new, A) == ([], CONCURRENT)
    assert given.abort(new) == ([], CONCURRENT)
    given.write_markers()
    assert given.add(new, A).answer is None
    assert given.shard.transactions[ID].producer == new
