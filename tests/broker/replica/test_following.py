"""Tests a follower: it appends its leader's batches unchanged, follows its watermarks, and rejects other epochs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.replica.following import BeginsInBatch, append_as_follower, take_watermarks
from broker.replica.partition import Partition
from coordinator.replication.roles import Following
from protocol.errors import ErrorCode, KafkaError
from storage.log import Log
from tests.broker.following import led_alone
from tests.storage.writing import (
    NOW_MS,
    TP,
    append,
    base_offsets,
    batch,
    end_transaction,
    error_of,
    headers,
    open_log,
    read_all,
    values,
)

LEADER, EPOCH = 2, 3
PID = 4000


class Waiter:
    """A waiter that counts its wake-ups."""

    committed_only = False
    missing_bytes = 1

    def __init__(self) -> None:
        self.woken = 0

    def appended(self, size_bytes: int) -> None:
        self.woken += 1

    def wake(self) -> None:
        self.woken += 1


@pytest.fixture
def leader(tmp_path: Path) -> Log:
    """Returns a leader's log with three batches of epochs 1 and 3: offsets 0 to 1, 2, and 3."""
    log = open_log(tmp_path / "leader-0")
    append(log, batch("a", "b"), leader_epoch=1)
    append(log, batch("c"), leader_epoch=EPOCH)
    append(log, batch("d"), leader_epoch=EPOCH)
    return log


@pytest.fixture
def follower(tmp_path: Path) -> Partition:
    partition = Partition(TP, bytes(16), open_log(tmp_path / "follower-0"))
    partition.become(Following(LEADER, EPOCH), NOW_MS)
    return partition


def fetched(leader: Log, offset: int = 0) -> memoryview:
    (part,) = leader.read(offset, 100_000).parts
    return memoryview(bytearray(part))


def replicate(follower: Partition, leader: Log, epoch: int = EPOCH) -> int:
    return append_as_follower(follower, fetched(leader, follower.log_end_offset), epoch, 0, NOW_MS)


def test_batches_keep_their_offsets_epochs_and_bytes(leader: Log, follower: Partition) -> None:
    assert replicate(follower, leader) == 4
    assert headers(follower.log) == headers(leader)
    assert follower.log.epochs.entries == leader.epochs.entries
    assert fetched(follower.log) == fetched(leader)
    assert follower.high_watermark == 0, "nothing is committed before the leader says so"


def test_the_high_watermark_is_the_leader_s_as_far_as_the_log_goes(leader: Log, follower: Partition) -> None:
    replicate(follower, leader)
    take_watermarks(follower, 3, 0)
    assert follower.high_watermark == 3
    take_watermarks(follower, 100, 0)
    assert follower.high_watermark == 4


def test_a_new_leader_that_knows_less_does_not_move_the_high_watermark_back(leader: Log, follower: Partition) -> None:
    replicate(follower, leader)
    take_watermarks(follower, 4, 0)
    take_watermarks(follower, 1, 0)
    assert follower.high_watermark == 4


@pytest.mark.source_only
def test_readers_wake_when_watermarks_move_and_only_then(leader: Log, follower: Partition) -> None:
    replicate(follower, leader)
    waiter = Waiter()
    follower.waiters[waiter] = None  # type: ignore[index]
    take_watermarks(follower, 2, 0)
    take_watermarks(follower, 2, 0)
    assert waiter.woken == 1


def test_the_log_start_offset_follows_no_further_than_what_is_committed(leader: Log, follower: Partition) -> None:
    replicate(follower, leader)
    take_watermarks(follower, 2, 3)
    assert follower.log_start_offset == 2
    take_watermarks(follower, 4, 3)
    assert follower.log_start_offset == 3
    assert values(read_all(follower.log)) == ["d"]


def test_batches_of_a_newer_epoch_than_was_asked_in_are_left_out(leader: Log, follower: Partition) -> None:
    """KAFKA-18723: a leader that answers late may have become a follower, and have another leader's records."""
    follower.become(Following(LEADER, 2), NOW_MS)
    assert replicate(follower, leader, 2) == 2
    assert values(read_all(follower.log)) == ["a", "b"]
    assert append_as_follower(follower, fetched(leader, 2), 2, 0, NOW_MS) == 0


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda one: one.become(Following(LEADER, EPOCH + 1), NOW_MS), id="another epoch"),
        pytest.param(lambda one: one.become(led_alone(1, EPOCH, 0), NOW_MS), id="leads itself"),
        pytest.param(lambda one: one.retire(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), id="deleted"),
    ],
)
def test_who_does_not_follow_in_that_epoch_takes_nothing(
    leader: Log, follower: Partition, change: Callable[[Partition], None]
) -> None:
    change(follower)
    with pytest.raises(KafkaError) as caught:
        replicate(follower, leader)
    assert caught.value.code is ErrorCode.FENCED_LEADER_EPOCH
    assert follower.log_end_offset == 0


def test_damaged_batches_leave_no_trace(leader: Log, follower: Partition) -> None:
    records = fetched(leader)
    records[-1] ^= 1
    with error_of(ErrorCode.CORRUPT_MESSAGE):
        append_as_follower(follower, records, EPOCH, 0, NOW_MS)
    assert follower.log_end_offset == 0
    assert follower.log.epochs.entries == []


def test_offsets_do_not_go_back(leader: Log, follower: Partition) -> None:
    replicate(follower, leader)
    with error_of(ErrorCode.UNKNOWN_SERVER_ERROR):
        append_as_follower(follower, fetched(leader, 2), EPOCH, 0, NOW_MS)
    assert follower.log_end_offset == 4


def test_an_empty_log_cannot_begin_within_a_batch(leader: Log, follower: Partition) -> None:
    """DeleteRecords has moved the leader's start into its first batch, so the follower's log must begin before that
    offset."""
    follower.log.truncate_fully(1, NOW_MS)
    with pytest.raises(BeginsInBatch) as caught:
        append_as_follower(follower, fetched(leader), EPOCH, 0, NOW_MS)
    follower.log.truncate_fully(caught.value.base_offset, NOW_MS)
    assert append_as_follower(follower, fetched(leader), EPOCH, 0, NOW_MS) == 4
    take_watermarks(follower, 4, 1)
    assert (follower.log_start_offset, base_offsets(follower.log)) == (1, [0])


def test_producers_and_transactions_follow(tmp_path: Path, follower: Partition) -> None:
    leader = open_log(tmp_path / "transactions-0")
    append(leader, batch("a", pid=PID, transactional=True), leader_epoch=1)
    end_transaction(leader, commit=False, leader_epoch=1)
    append(leader, batch("b", pid=PID, sequence=1, transactional=True), leader_epoch=1)
    replicate(follower, leader)
    take_watermarks(follower, 3, 0)
    assert follower.last_stable_offset == 2
    assert follower.log.aborted_transactions(0, 3) == leader.aborted_transactions(0, 3)
    (entry,) = follower.producers
    assert (entry.producer_id, entry.next_sequence) == (PID, 2)


def test_records_of_before_the_leader_s_start_give_way_to_its_first_batch(leader: Log, follower: Partition) -> None:
    """The follower has records of another leader that were never committed; this leader has deleted its own records
    there since."""
    append_as_follower(follower, memoryview(bytearray(batch("other"))), EPOCH, 0, NOW_MS)
    with error_of(ErrorCode.UNKNOWN_SERVER_ERROR):
        append_as_follower(follower, fetched(leader), EPOCH, 0, NOW_MS)
    with pytest.raises(BeginsInBatch) as caught:
        append_as_follower(follower, fetched(leader), EPOCH, 1, NOW_MS)
    assert caught.value.base_offset == 0
