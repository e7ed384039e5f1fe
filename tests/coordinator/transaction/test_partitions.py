"""Tests AddPartitionsToTxn: partitions join a transaction, or are verified to be part of it."""

from __future__ import annotations

import pytest

from coordinator.transaction.state import State
from coordinator.transaction.transaction import Producer
from protocol.errors import ErrorCode
from tests.coordinator.driver import START_MS
from tests.coordinator.transaction.given import ID, OFFSETS, PRODUCER, A, B, Given, transaction


@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_the_first_partition_begins_the_transaction(state: State) -> None:
    given = Given()
    given.put(transaction(state))
    given.now_ms += 1_000
    begun = transaction(State.ONGOING, started_ms=START_MS + 1_000, updated_ms=START_MS + 1_000, client_version=2)
    assert given.add(PRODUCER, A) == ([begun], None)


def test_another_partition_joins_and_the_start_stays() -> None:
    given = Given()
    given.put(transaction(State.ONGOING))
    given.now_ms += 1_000
    joined = transaction(State.ONGOING, partitions=frozenset({A, B, OFFSETS}), updated_ms=START_MS + 1_000)
    assert given.add(PRODUCER, B, OFFSETS, version=0) == ([joined], None)


def test_partitions_that_are_in_it_write_nothing() -> None:
    given = Given()
    given.put(transaction(State.ONGOING, partitions=frozenset({A, B})))
    assert given.add(PRODUCER, B, A) == ([], None)


@pytest.mark.parametrize(
    ("name", "producer", "code"),
    [
        (ID, Producer(6, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ID, Producer(5, 2), ErrorCode.PRODUCER_FENCED),
        (ID, Producer(5, 4), ErrorCode.PRODUCER_FENCED),
        ("someone else", PRODUCER, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ("", PRODUCER, ErrorCode.INVALID_REQUEST),
    ],
)
def test_only_the_current_producer_adds_and_asks(name: str, producer: Producer, code: ErrorCode) -> None:
    given = Given()
    given.put(transaction(State.ONGOING))
    assert given.add(producer, B, name=name) == ([], code)
    assert given.verify(producer, A, name=name) == ([], code)


def test_verification_tells_which_partitions_are_in_it() -> None:
    given = Given()
    given.put(transaction(State.ONGOING))
    assert given.verify(PRODUCER, A, B) == ([], {A})


def test_no_partition_is_in_a_transaction_that_is_over() -> None:
    given = Given()
    given.put(transaction(State.COMPLETE_COMMIT))
    assert given.verify(PRODUCER, A) == ([], frozenset())
