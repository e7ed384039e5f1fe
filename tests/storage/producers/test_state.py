"""Tests the rules of a partition for idempotent and transactional producers, as Kafka's ProducerStateManagerTest
does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import MAX_SEQUENCE, TRANSACTIONAL
from storage.disk import OsDisk
from storage.producers.entry import CachedBatch, CompletedTxn, Origin
from storage.producers.state import ProducerBatch, ProducerState
from tests.storage.producing import ABORT, COMMIT, DAY_MS, PID, append, batch, error_of, marker_batch


@pytest.fixture
def state() -> ProducerState:
    return ProducerState("unwritten", disk=OsDisk(), expiration_ms=DAY_MS)


# Sequences


def test_sequences_follow_one_another(state: ProducerState) -> None:
    append(state, batch(0, count=10), 0)
    append(state, batch(10, count=1), 10)
    assert state.producers[PID].last_sequence == 10


def test_an_unknown_producer_may_begin_anywhere(state: ProducerState) -> None:
    append(state, batch(77), 0)
    append(state, batch(78), 1)


def test_a_gap_is_out_of_order(state: ProducerState) -> None:
    append(state, batch(0), 0)
    assert error_of(state, batch(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap_to_zero(state: ProducerState) -> None:
    append(state, batch(MAX_SEQUENCE - 1, count=2), 0)
    assert error_of(state, batch(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(state, batch(0), 2)


def test_a_batch_across_the_wrap_is_recognised_when_repeated(state: ProducerState) -> None:
    append(state, batch(MAX_SEQUENCE - 1, count=5), 100)
    duplicate = state.check(batch(MAX_SEQUENCE - 1, count=5), Origin.CLIENT)
    assert duplicate is not None
    assert (duplicate.first_sequence, duplicate.last_sequence) == (MAX_SEQUENCE - 1, 2)
    assert duplicate.first_offset == 100
    append(state, batch(3), 105)


def test_a_duplicate_is_told_its_first_offset_and_time(state: ProducerState) -> None:
    append(state, batch(0, count=3, timestamp=123), 40)
    append(state, batch(3), 43)
    duplicate = state.check(batch(0, count=3), Origin.CLIENT)
    assert duplicate == CachedBatch(last_sequence=2, last_offset=42, offset_delta=2, timestamp=123)
    assert duplicate.first_offset == 40


def test_five_batches_are_remembered(state: ProducerState) -> None:
    for sequence in range(6):
        append(state, batch(sequence), sequence)
    assert state.check(batch(1), Origin.CLIENT) is not None
    assert error_of(state, batch(0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_part_of_a_batch_is_no_duplicate(state: ProducerState) -> None:
    append(state, batch(0, count=3), 0)
    assert error_of(state, batch(0, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(state, batch(1, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_check_changes_nothing(state: ProducerState) -> None:
    state.check(batch(0), Origin.CLIENT)
    assert state.is_empty
    append(state, batch(0), 0)
    state.check(batch(1), Origin.CLIENT)
    assert state.producers[PID].last_sequence == 0


# Epochs


def test_a_new_epoch_begins_at_sequence_zero(state: ProducerState) -> None:
    append(state, batch(0), 0)
    assert error_of(state, batch(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(state, batch(0, epoch=1), 1)
    assert state.producers[PID].epoch == 1


def test_an_old_epoch_is_refused(state: ProducerState) -> None:
    append(state, batch(0, epoch=5), 0)
    assert error_of(state, batch(1, epoch=4)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert error_of(state, batch(-1, epoch=4), Origin.COORDINATOR) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_knows_no_duplicates(state: ProducerState) -> None:
    append(state, batch(0), 0)
    append(state, batch(0, epoch=1), 1)
    assert len(state.producers[PID].batches) == 1


def test_a_leader_s_batches_are_taken_as_they_are(state: ProducerState) -> None:
    append(state, batch(0, epoch=5), 0)
    append(state, batch(9, epoch=4), 1, origin=Origin.REPLICATION)
    assert state.producers[PID].epoch == 4


def test_the_broker_s_own_batches_have_no_sequence(state: ProducerState) -> None:
    for offset in range(3):
        append(state, batch(-1, attributes=TRANSACTIONAL), offset, origin=Origin.COORDINATOR)
    assert state.producers[PID].last_sequence == -1
    assert state.producers[PID].last_batch.last_offset == 2


# Transactions


def test_a_transaction_is_unstable_from_its_first_offset_until_its_marker_is_replicated(state: ProducerState) -> None:
    append(state, batch(0, count=2, attributes=TRANSACTIONAL), 10)
    append(state, batch(2, attributes=TRANSACTIONAL), 12)
    assert state.first_unstable_offset == 10
    assert append(state, marker_batch(), 13, marker=COMMIT) == CompletedTxn(PID, 10, 13, aborted=False)
    assert state.first_unstable_offset == 10
    state.on_high_watermark_updated(13)
    assert state.first_unstable_offset == 10
    state.on_high_watermark_updated(14)
    assert state.first_unstable_offset is None


def test_the_earliest_open_transaction_bounds_what_is_stable(state: ProducerState) -> None:
    append(state, batch(0, pid=1, attributes=TRANSACTIONAL), 10)
    append(state, batch(0, pid=2, attributes=TRANSACTIONAL), 11)
    append(state, marker_batch(pid=1), 12, marker=ABORT)
    state.on_high_watermark_updated(13)
    assert state.first_unstable_offset == 11


def test_a_later_transaction_that_ended_does_not_hide_an_earlier_one(state: ProducerState) -> None:
    append(state, batch(0, pid=1, attributes=TRANSACTIONAL), 10)
    append(state, batch(0, pid=2, attributes=TRANSACTIONAL), 11)
    append(state, marker_batch(pid=2), 12, marker=ABORT)
    assert state.first_unstable_offset == 10
    append(state, marker_batch(pid=1), 13, marker=ABORT)
    assert state.first_unstable_offset == 10
    state.on_high_watermark_updated(13)
    assert state.first_unstable_offset == 10
    state.on_high_watermark_updated(14)
    assert state.first_unstable_offset is None


def test_the_last_stable_offset_of_a_completed_transaction(state: ProducerState) -> None:
    append(state, batch(0, pid=1, attributes=TRANSACTIONAL), 10)
    append(state, batch(0, pid=2, attributes=TRANSACTIONAL), 11)
    first = state.update(marker_batch(pid=1), 12, 900, ABORT)
    assert first is not None
    assert state.last_stable_offset(first) == 11
    state.complete(first)
    second = state.update(marker_batch(pid=2), 13, 900, ABORT)
    assert second is not None
    assert state.last_stable_offset(second) == 14


def test_a_marker_without_data_completes_nothing(state: ProducerState) -> None:
    assert append(state, marker_batch(epoch=3), 0, marker=ABORT) is None
    assert state.producers[PID].epoch == 3
    assert state.first_unstable_offset is None


def test_sequences_go_on_after_a_marker(state: ProducerState) -> None:
    append(state, batch(0, attributes=TRANSACTIONAL), 0)
    append(state, marker_batch(), 1, marker=COMMIT)
    append(state, batch(1, attributes=TRANSACTIONAL), 2)
    assert state.first_unstable_offset == 0
    state.on_high_watermark_updated(3)
    assert state.first_unstable_offset == 2


def test_after_a_marker_with_a_new_epoch_they_begin_again(state: ProducerState) -> None:
    append(state, batch(0, attributes=TRANSACTIONAL), 0)
    append(state, marker_batch(epoch=1), 1, marker=ABORT._replace(transaction_version=2))
    assert error_of(state, batch(1, epoch=1, attributes=TRANSACTIONAL)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(state, batch(0, epoch=1, attributes=TRANSACTIONAL), 2)


def test_an_old_marker_is_refused(state: ProducerState) -> None:
    append(state, batch(0, epoch=2, attributes=TRANSACTIONAL), 0)
    assert error_of(state, marker_batch(epoch=1), Origin.COORDINATOR, marker=ABORT) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_with_transactions_v2_a_marker_of_the_open_epoch_is_late(state: ProducerState) -> None:
    late = ABORT._replace(transaction_version=2)
    append(state, batch(0, epoch=2, attributes=TRANSACTIONAL), 0)
    assert error_of(state, marker_batch(epoch=2), Origin.COORDINATOR, marker=late) is ErrorCode.INVALID_PRODUCER_EPOCH
    append(state, marker_batch(epoch=3), 1, marker=late)
    append(state, marker_batch(epoch=3), 2, marker=late)  # the coordinator tries again what it has not heard of


def test_a_zombie_coordinator_is_fenced(state: ProducerState) -> None:
    append(state, marker_batch(), 0, marker=ABORT._replace(coordinator_epoch=5))
    zombie = ABORT._replace(coordinator_epoch=4)
    code = error_of(state, marker_batch(), Origin.COORDINATOR, marker=zombie)
    assert code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    append(state, marker_batch(), 1, marker=zombie, origin=Origin.REPLICATION)


def test_a_plain_batch_within_a_transaction_is_refused(state: ProducerState) -> None:
    append(state, batch(0, attributes=TRANSACTIONAL), 0)
    assert error_of(state, batch(1)) is ErrorCode.INVALID_TXN_STATE


def test_an_emptied_control_batch_means_nothing(state: ProducerState) -> None:
    append(state, batch(0, attributes=TRANSACTIONAL), 0)
    assert state.update(marker_batch(), 1, 900) is None
    assert state.first_unstable_offset == 0


# Several batches


def test_batches_of_one_append_are_checked_each_after_those_before_it(state: ProducerState) -> None:
    append(state, batch(0), 0)
    state.check_all([ProducerBatch(batch(1), 1), ProducerBatch(batch(2), 2)], Origin.CLIENT)
    with pytest.raises(KafkaError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        state.check_all([ProducerBatch(batch(1), 1), ProducerBatch(batch(3), 2)], Origin.CLIENT)
    assert state.producers[PID].last_sequence == 0


def test_replaying_the_log_gives_the_state_it_was_written_with(state: ProducerState) -> None:
    state.replay(
        [
            ProducerBatch(batch(0, attributes=TRANSACTIONAL), 0),
            ProducerBatch(marker_batch(), 1, COMMIT),
            ProducerBatch(batch(1, attributes=TRANSACTIONAL), 2),
            ProducerBatch(batch(0, pid=5), 3),
        ]
    )
    state.on_high_watermark_updated(4)
    assert state.first_unstable_offset == 2
    assert sorted(state.producers) == [5, PID]
    assert state.producers[PID].coordinator_epoch == 1


# Expiry


def test_idle_producers_are_forgotten_but_not_open_transactions(state: ProducerState) -> None:
    append(state, batch(0, pid=1, timestamp=1000), 0)
    append(state, batch(0, pid=2, timestamp=1001), 1)
    append(state, batch(0, pid=3, timestamp=1000, attributes=TRANSACTIONAL), 2)
    state.remove_expired(1000 + DAY_MS)
    assert sorted(state.producers) == [2, 3]
    append(state, batch(44, pid=1), 3)


class Model:
    """A simple model of the rules for one idempotent producer."""

    def __init__(self) -> None:
        self.epoch = -1
        self.written: list[tuple[int, int]] = []

    def answer(self, epoch: int, sequence: int, count: int) -> ErrorCode | int | None:
        """Returns None if the batch must be appended; a number for a duplicate of the batch that many batches ago;
        otherwise the error."""
        if epoch == self.epoch and (sequence, count) in self.written[-5:]:
            return self.written[::-1].index((sequence, count))
        if epoch < self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        expected = sum(self.written[-1]) if self.written and epoch == self.epoch else 0
        return None if self.epoch < 0 or sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def write(self, epoch: int, sequence: int, count: int) -> None:
        self.written = [*self.written, (sequence, count)] if epoch == self.epoch else [(sequence, count)]
        self.epoch = epoch


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 8), st.integers(1, 2)), max_size=30))
def test_any_requests_are_answered_as_the_rules_say(requests: list[tuple[int, int, int]]) -> None:
    state = ProducerState("unwritten", disk=OsDisk(), expiration_ms=DAY_MS)
    model = Model()
    offsets: list[int] = []
    for epoch, sequence, count in requests:
        expected = model.answer(epoch, sequence, count)
        header = batch(sequence, count=count, epoch=epoch)
        if isinstance(expected, ErrorCode):
            assert error_of(state, header) is expected
        elif expected is None:
            append(state, header, state.end_offset)
            offsets.append(state.end_offset - count)
            model.write(epoch, sequence, count)
        else:
            duplicate = state.check(header, Origin.CLIENT)
            assert duplicate is not None
            assert duplicate.first_offset == offsets[-1 - expected]
