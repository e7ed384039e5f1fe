"""Tests acquisition: the records of the log's batches that a member gets, and their delivery counts."""

from __future__ import annotations

import pytest

from coordinator.share.batches import StateBatch
from coordinator.share_partition.expiry import archive_aborted
from coordinator.share_partition.request import RECORD_LIMIT
from coordinator.share_partition.run import Limits
from tests.coordinator.share_partition.given import (
    ACCEPT,
    NOW_MS,
    RELEASE,
    expire,
    fetch,
    say,
    share_partition,
    states,
    write,
)


def test_whole_batches_are_acquired() -> None:
    partition = share_partition()
    assert fetch(partition, "m1", (0, 4), (5, 9)) == [(0, 9, 1)]
    assert states(partition) == ["0-9 acquired 1 m1"]
    assert partition.next_fetch_offset() == 10


def test_the_last_batch_is_not_cut_where_the_limit_falls_into_it() -> None:
    partition = share_partition()
    assert fetch(partition, "m1", (0, 4), (5, 9), (10, 14), max_records=7) == [(0, 9, 1)]
    assert partition.next_fetch_offset() == 10


def test_the_mode_record_limit_gives_exactly_what_was_asked_for() -> None:
    partition = share_partition()
    assert fetch(partition, "m1", (0, 9), max_records=3, mode=RECORD_LIMIT) == [(0, 2, 1)]
    assert states(partition) == ["0-2 acquired 1 m1", "3-9 available 0"]
    assert partition.next_fetch_offset() == 3
    assert fetch(partition, "m2", (0, 9), max_records=4, mode=RECORD_LIMIT) == [(3, 6, 1)]
    assert fetch(partition, "m1", (0, 9), max_records=9, mode=RECORD_LIMIT) == [(7, 9, 1)]
    assert partition.next_fetch_offset() == 10


def test_ranges_are_split_at_batches_once_they_have_the_batch_size() -> None:
    partition = share_partition()
    assert fetch(partition, "m1", (0, 2), (3, 5), (6, 8), (9, 11), batch_size=5) == [(0, 5, 1), (6, 11, 1)]


def test_a_batch_that_begins_before_the_start_offset_is_acquired_from_there() -> None:
    partition = share_partition(start=3)
    assert fetch(partition, "m1", (0, 9)) == [(3, 9, 1)]


def test_what_lies_below_the_start_offset_is_nobodys() -> None:
    partition = share_partition(start=10)
    assert fetch(partition, "m1", (0, 9), offset=10) == []


def test_a_released_batch_is_acquired_again_and_counted() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 4), (5, 9), batch_size=5)
    write(partition, say(partition, "m1", 0, 4, RELEASE))
    assert partition.next_fetch_offset() == 0
    assert fetch(partition, "m2", (0, 4), (5, 9)) == [(0, 4, 2)]
    assert states(partition) == ["0-4 acquired 2 m2", "5-9 acquired 1 m1"]


def test_released_records_within_a_batch_are_acquired_again_alone() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 9))
    write(partition, say(partition, "m1", 3, 4, RELEASE))
    assert partition.next_fetch_offset() == 3
    assert fetch(partition, "m2", (0, 9), (10, 14)) == [(3, 4, 2), (10, 14, 1)]


def test_no_more_than_the_limit_of_records_is_in_flight() -> None:
    partition = share_partition(limits=Limits(max_in_flight_records=10))
    assert fetch(partition, "m1", (0, 4), (5, 9), (10, 14)) == [(0, 9, 1)]
    assert not partition.can_acquire
    assert fetch(partition, "m2", (10, 14)) == []
    write(partition, say(partition, "m1", 0, 4, ACCEPT))
    assert (partition.start_offset, partition.in_flight_count) == (5, 5)
    assert fetch(partition, "m2", (10, 14)) == [(10, 14, 1)]


def test_at_the_limit_what_came_free_in_between_may_still_be_had() -> None:
    partition = share_partition(limits=Limits(max_in_flight_records=10))
    fetch(partition, "m1", (0, 4), (5, 9), batch_size=5)
    write(partition, say(partition, "m1", 5, 9, RELEASE))
    assert fetch(partition, "m2", (5, 9), (10, 14)) == [(5, 9, 2)]


def test_records_that_vanished_from_the_log_are_archived() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 4), (5, 9), batch_size=5)
    write(partition, say(partition, "m1", 0, 9, RELEASE))
    assert fetch(partition, "m1", (5, 9), offset=0) == [(5, 9, 2)]
    assert partition.start_offset == 5
    assert states(partition) == ["5-9 acquired 2 m1"]


def test_a_record_is_throttled_after_half_of_its_deliveries() -> None:
    partition = share_partition(limits=Limits(max_delivery_count=5))
    for _ in range(3):
        fetch(partition, "m1", (0, 15))
        write(partition, say(partition, "m1", 0, 15, RELEASE))
    assert fetch(partition, "m1", (0, 15)) == [(0, 7, 4)]
    assert fetch(partition, "m2", (0, 15)) == [(8, 15, 4)]


def test_the_last_attempt_is_made_alone() -> None:
    partition = share_partition(limits=Limits(max_delivery_count=3))
    for _ in range(2):
        while fetch(partition, "m1", (0, 3)):
            pass
        write(partition, say(partition, "m1", 0, 3, RELEASE))
    assert fetch(partition, "m1", (0, 3)) == [(0, 0, 3)]
    assert fetch(partition, "m1", (0, 3)) == [(1, 1, 3)]


def test_batches_of_aborted_transactions_are_passed_over() -> None:
    partition = share_partition()
    assert fetch(partition, "m1", (0, 4), (5, 9)) == [(0, 9, 1)]
    archive_aborted(partition, [(0, 4)])
    assert states(partition) == ["0-4 archived 1", "5-9 acquired 1 m1"]
    assert partition.advance()
    assert partition.start_offset == 5


def test_gaps_between_what_was_stored_are_filled() -> None:
    partition = share_partition(start=0, batches=[StateBatch(5, 9, 2, 1), StateBatch(15, 19, 0, 2)])
    assert partition.next_fetch_offset() == 0
    assert fetch(partition, "m1", (0, 4), (5, 9), (10, 14), (15, 19), (20, 24)) == [
        (0, 4, 1),
        (10, 14, 1),
        (15, 19, 3),
        (20, 24, 1),
    ]
    assert partition.gap is None


def test_a_stored_lease_is_over() -> None:
    partition = share_partition(start=0, batches=[StateBatch(0, 4, 1, 2)])
    assert fetch(partition, "m1", (0, 4)) == [(0, 4, 3)]


def test_nothing_is_acquired_before_it_is_loaded_or_after_it_is_fenced() -> None:
    partition = share_partition()
    partition.is_active = False
    assert fetch(partition, "m1", (0, 4), offset=0) == []


def test_locks_run_out_when_the_group_says() -> None:
    partition = share_partition(limits=Limits(lock_duration_ms=100))
    fetch(partition, "m1", (0, 4))
    assert partition.next_deadline_ms() == NOW_MS + 100
    assert expire(partition, NOW_MS + 99) is None
    assert expire(partition, NOW_MS + 100) is not None


@pytest.mark.parametrize("batch_size", [0, -1, -(1 << 31)])
def test_a_batch_size_that_is_none_makes_no_empty_range(batch_size: int) -> None:
    partition = share_partition()
    assert fetch(partition, "m", (0, 2), (3, 4), batch_size=batch_size) == [(0, 2, 1), (3, 4, 1)]
    assert [run.size for batch in partition.cache.batches for run in batch.runs] == [3, 2]
