"""Tests deadlines: transactions that take too long are aborted, unused ids are removed."""

from __future__ import annotations

import pytest

from coordinator.transaction import shard
from coordinator.transaction.settings import TransactionSettings
from coordinator.transaction.state import State
from coordinator.transaction.transaction import LAST_CLIENT_EPOCH, Producer
from protocol.errors import ErrorCode
from tests.coordinator.driver import START_MS
from tests.coordinator.transaction.given import ID, PRODUCER, TIMEOUT_MS, A, Given, transaction

LOOK_MS = 10_000
WEEK_MS = 604_800_000


def test_an_empty_shard_has_no_deadline() -> None:
    assert Given().shard.next_deadline_ms() is None


def test_a_transaction_within_its_timeout_goes_on() -> None:
    given = Given()
    given.put(transaction(State.ONGOING))
    given.pass_time(TIMEOUT_MS)
    assert given.transaction.state is State.ONGOING


def test_a_transaction_beyond_its_timeout_is_aborted_and_its_producer_fenced() -> None:
    given = Given()
    given.put(transaction(State.ONGOING))
    records, _ = given.pass_time(TIMEOUT_MS + LOOK_MS)
    decided = transaction(
        State.PREPARE_ABORT, Producer(5, 4), updated_ms=START_MS + TIMEOUT_MS + LOOK_MS, last_epoch=3, client_version=2
    )
    assert records == [decided]
    given.write_markers()
    assert given.commit(PRODUCER).answer is ErrorCode.INVALID_TXN_STATE
    assert given.add(PRODUCER, A).answer is ErrorCode.PRODUCER_FENCED


def test_before_transactions_v2_a_commit_after_the_timeout_is_fenced() -> None:
    given = Given(version=1)
    given.put(transaction(State.ONGOING))
    given.pass_time(TIMEOUT_MS + LOOK_MS)
    assert given.transaction == transaction(
        State.PREPARE_ABORT, Producer(5, 4), updated_ms=START_MS + TIMEOUT_MS + LOOK_MS
    )
    assert given.commit(PRODUCER, version=0).answer is ErrorCode.PRODUCER_FENCED


def test_the_writer_of_markers_hears_of_it() -> None:
    given = Given()
    given.put(transaction(State.ONGOING))
    given.write_on()
    given.pass_time(TIMEOUT_MS + LOOK_MS)
    assert isinstance(given.markers(), list)


def test_a_late_transaction_of_before_a_restart_is_aborted() -> None:
    given = Given()
    given.put(transaction(State.ONGOING))
    given.restart()
    given.now_ms += TIMEOUT_MS + 1
    assert [transaction.state for transaction in given.pass_time(0).records if transaction] == [State.PREPARE_ABORT]


def test_without_a_producer_id_at_hand_the_next_look_aborts_it() -> None:
    given = Given()
    given.put(transaction(State.ONGOING, Producer(5, LAST_CLIENT_EPOCH)))
    given.ids_at_hand = False
    assert given.pass_time(TIMEOUT_MS + LOOK_MS).records == []
    given.ids_at_hand = True
    assert len(given.pass_time(LOOK_MS).records) == 1


class Fault(Exception):
    pass


class WithoutIds(Given):
    def _new_producer_id(self) -> int:
        raise Fault


def test_a_transaction_that_a_bug_keeps_open_keeps_no_other_open() -> None:
    given = WithoutIds()
    given.put(transaction(State.ONGOING, Producer(6, LAST_CLIENT_EPOCH))._replace(transactional_id="faulty"))
    given.put(transaction(State.ONGOING))
    with pytest.raises(Fault) as caught:
        given.pass_time(TIMEOUT_MS + LOOK_MS)
    assert given.transaction.state is State.PREPARE_ABORT
    assert given.shard.transactions["faulty"].state is State.ONGOING
    given.shard.expire_failed(caught.value, given.now_ms)
    assert given.shard.next_deadline_ms() == given.now_ms + LOOK_MS


def test_how_often_it_looks_is_a_setting() -> None:
    given = Given(settings=TransactionSettings(transaction_abort_timed_out_transaction_cleanup_interval_ms=50))
    given.put(transaction(State.ONGOING))
    assert len(given.pass_time(TIMEOUT_MS + 50).records) == 1


@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_an_idle_id_is_forgotten(state: State) -> None:
    given = Given()
    given.put(transaction(state))
    assert given.pass_time(WEEK_MS - 1).records == []
    assert given.pass_time(3_600_000).records == [None]
    assert ID not in given.shard.transactions
    assert given.shard.next_deadline_ms() is None


@pytest.mark.parametrize("state", [State.PREPARE_COMMIT, State.PREPARE_ABORT])
def test_an_id_with_a_transaction_is_kept(state: State) -> None:
    given = Given()
    given.put(transaction(state))
    given.pass_time(2 * WEEK_MS)
    assert ID in given.shard.transactions


def test_many_idle_ids_go_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "MAX_TOMBSTONE_BYTES", 7)
    given = Given()
    for number in range(5):
        given.put(transaction(State.EMPTY)._replace(transactional_id=f"id {number}"))
    given.now_ms += WEEK_MS
    assert [len(given.shard.expire(given.now_ms).records)] == [2]
    assert given.pass_time(0).records == [None] * 5
