"""Tests EndTxn: every state, commit and abort, both versions of the protocol."""

from __future__ import annotations

import pytest

from coordinator.transaction.state import FOLLOWS, State
from coordinator.transaction.transaction import LAST_CLIENT_EPOCH, MAX_EPOCH, Producer
from protocol.errors import ErrorCode
from tests.coordinator.driver import START_MS
from tests.coordinator.transaction.given import FIRST_PRODUCER_ID, ID, PRODUCER, A, B, Given, transaction

BUMPED = Producer(5, 4)

INVALID, CONCURRENT, FENCED = (
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.PRODUCER_FENCED,
)


# Transactions v1: the epoch stays


@pytest.mark.parametrize(("committed", "state"), [(True, State.PREPARE_COMMIT), (False, State.PREPARE_ABORT)])
def test_v1_an_ongoing_transaction_is_decided_and_answered(committed: bool, state: State) -> None:
    given = Given(version=1)
    given.put(transaction(State.ONGOING, client_version=0))
    given.now_ms += 5
    end = given.commit if committed else given.abort
    assert end(PRODUCER, version=0) == ([transaction(state, updated_ms=START_MS + 5)], PRODUCER)


@pytest.mark.parametrize(
    ("state", "on_commit", "on_abort"),
    [
        (State.EMPTY, INVALID, INVALID),
        (State.COMPLETE_COMMIT, PRODUCER, INVALID),
        (State.COMPLETE_ABORT, INVALID, PRODUCER),
    ],
)
def test_v1_elsewhere_an_end_is_a_retry_or_wrong(state: State, on_commit: object, on_abort: object) -> None:
    given = Given(version=1)
    given.put(transaction(state))
    assert given.commit(PRODUCER, version=0) == ([], on_commit)
    assert given.abort(PRODUCER, version=0) == ([], on_abort)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(
    ("name", "producer", "code"),
    [
        (ID, Producer(5, 2), FENCED),
        (ID, Producer(5, 4), FENCED),
        (ID, Producer(6, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ("someone else", PRODUCER, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ("", PRODUCER, ErrorCode.INVALID_REQUEST),
    ],
)
def test_only_the_current_producer_ends_it(version: int, name: str, producer: Producer, code: ErrorCode) -> None:
    given = Given()
    given.put(transaction(State.ONGOING))
    assert given.commit(producer, version, name) == ([], code)


def test_v1_the_markers_done_the_id_is_free_and_its_epoch_as_before() -> None:
    given = Given(version=1)
    given.put(transaction(State.ONGOING, client_version=0))
    given.commit(PRODUCER, version=0)
    given.now_ms += 5
    over = transaction(State.COMPLETE_COMMIT, updated_ms=START_MS + 5)
    assert given.write_markers().records == [over]


# Transactions v2: each end bumps the epoch


@pytest.mark.parametrize(("committed", "state"), [(True, State.PREPARE_COMMIT), (False, State.PREPARE_ABORT)])
def test_v2_an_end_bumps_the_epoch(committed: bool, state: State) -> None:
    given = Given()
    given.put(transaction(State.ONGOING, client_version=2))
    given.now_ms += 5
    end = given.commit if committed else given.abort
    decided = transaction(state, BUMPED, updated_ms=START_MS + 5, last_epoch=3, client_version=2)
    assert end(PRODUCER) == ([decided], BUMPED)
    over = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
    assert given.write_markers().records == [
        transaction(over, BUMPED, updated_ms=START_MS + 5, last_epoch=3, client_version=2)
    ]


@pytest.mark.parametrize(
    ("state", "on_commit", "on_abort"),
    [
        (State.COMPLETE_COMMIT, BUMPED, INVALID),
        (State.COMPLETE_ABORT, INVALID, BUMPED),
    ],
)
def test_v2_a_retry_is_known_by_the_epoch_before(state: State, on_commit: object, on_abort: object) -> None:
    given = Given()
    given.put(transaction(state, BUMPED, client_version=2))
    assert given.commit(PRODUCER) == ([], on_commit)
    assert given.abort(PRODUCER) == ([], on_abort)


@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_v2_a_transaction_without_partitions_can_be_aborted_but_not_committed(state: State) -> None:
    given = Given()
    given.put(transaction(state))
    given.now_ms += 5
    assert given.commit(PRODUCER) == ([], INVALID)
    decided = transaction(
        State.PREPARE_ABORT,
        BUMPED,
        partitions=frozenset(),
        started_ms=START_MS + 5,
        updated_ms=START_MS + 5,
        last_epoch=3,
        client_version=2,
    )
    assert given.abort(PRODUCER) == ([decided], BUMPED)
    assert [transaction.state for transaction in given.write_markers().records if transaction] == [State.COMPLETE_ABORT]


@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_v2_an_older_producer_is_fenced_at_rest_too(state: State) -> None:
    given = Given()
    given.put(transaction(state))
    assert given.abort(Producer(5, 1)) == ([], FENCED)


def test_v2_the_last_epoch_of_a_producer_id_gives_way_to_a_new_one() -> None:
    given = Given()
    given.put(transaction(State.ONGOING, Producer(5, LAST_CLIENT_EPOCH), client_version=2))
    new = Producer(FIRST_PRODUCER_ID, 0)
    records, answer = given.commit(Producer(5, LAST_CLIENT_EPOCH))
    assert answer == new
    decided = transaction(
        State.PREPARE_COMMIT,
        Producer(5, MAX_EPOCH),
        next_producer_id=FIRST_PRODUCER_ID,
        last_epoch=LAST_CLIENT_EPOCH,
        client_version=2,
    )
    assert records == [decided]
    assert given.write_markers().records == [
        transaction(State.COMPLETE_COMMIT, new, previous_producer_id=5, last_epoch=LAST_CLIENT_EPOCH, client_version=2)
    ]


def test_v2_the_end_that_changed_the_producer_id_can_be_asked_for_again() -> None:
    given = Given()
    given.put(transaction(State.ONGOING, Producer(5, LAST_CLIENT_EPOCH), client_version=2))
    given.commit(Producer(5, LAST_CLIENT_EPOCH))
    assert given.commit(Producer(5, LAST_CLIENT_EPOCH)).answer is CONCURRENT
    given.write_markers()
    given.restart()
    assert given.commit(Producer(5, LAST_CLIENT_EPOCH)) == ([], Producer(FIRST_PRODUCER_ID, 0))
    assert given.abort(Producer(5, LAST_CLIENT_EPOCH)) == ([], INVALID)


def test_v2_without_a_producer_id_at_hand_the_transaction_stays_open() -> None:
    given = Given()
    given.put(transaction(State.ONGOING, Producer(5, LAST_CLIENT_EPOCH)))
    given.ids_at_hand = False
    assert given.commit(Producer(5, LAST_CLIENT_EPOCH)) == ([], ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def test_a_client_of_v1_ends_its_way_in_a_cluster_of_v2() -> None:
    given = Given(version=2)
    given.put(transaction(State.COMPLETE_COMMIT, client_version=2))
    given.add(PRODUCER, A, B, version=0)
    assert given.commit(PRODUCER, version=0).answer == PRODUCER
    assert given.transaction.client_version == 0


def test_every_state_but_the_ones_in_passing_is_reached_from_a_state_that_exists() -> None:
    assert set(FOLLOWS) == set(State)
    assert all(before is not State.DEAD for befores in FOLLOWS.values() for before in befores)
