"""Tests locks that expire, and logs whose start moves."""

from __future__ import annotations

from coordinator.share.batches import StateBatch
from coordinator.share_partition.expiry import move_log_start
from coordinator.share_partition.run import Limits
from tests.coordinator.share_partition.given import (
    ACCEPT,
    NOW_MS,
    RELEASE,
    RENEW,
    expire,
    fail,
    fetch,
    release,
    say,
    share_partition,
    states,
    write,
)

LATER_MS = NOW_MS + 30_000


def test_a_lock_that_runs_out_makes_the_records_available() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 9))
    change = expire(partition, LATER_MS)
    assert states(partition) == ["0-9 available 1"]
    assert write(partition, change) == [(0, 9, 0, 1)]
    assert partition.next_deadline_ms() is None
    assert fetch(partition, "m2", (0, 9)) == [(0, 9, 2)]


def test_it_does_so_even_if_that_cannot_be_written() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 9))
    fail(partition, expire(partition, LATER_MS))
    assert states(partition) == ["0-9 available 1"]


def test_the_last_lock_that_runs_out_archives_the_records() -> None:
    partition = share_partition(limits=Limits(max_delivery_count=1))
    fetch(partition, "m1", (0, 9))
    assert write(partition, expire(partition, LATER_MS)) == [(0, 9, 4, 1)]
    assert partition.start_offset == 10


def test_what_is_being_acknowledged_does_not_run_out() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 9))
    change = say(partition, "m1", 0, 9, ACCEPT)
    assert expire(partition, LATER_MS) is None
    write(partition, change)
    assert partition.start_offset == 10


def test_a_renewed_lock_runs_out_later() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 9))
    say(partition, "m1", 0, 4, RENEW, now_ms=NOW_MS + 1)
    assert write(partition, expire(partition, LATER_MS)) == [(5, 9, 0, 1)]
    assert partition.next_deadline_ms() == LATER_MS + 1


def test_a_member_that_goes_gives_back_what_it_has_and_nothing_else() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 4))
    fetch(partition, "m2", (5, 9))
    change = release(partition, "m1")
    assert states(partition) == ["0-4 available 1…", "5-9 acquired 1 m2"]
    assert fetch(partition, "m3", (0, 4), offset=0) == []
    assert write(partition, change) == [(0, 4, 0, 1)]
    assert fetch(partition, "m3", (0, 4)) == [(0, 4, 2)]
    assert release(partition, "m1") is None


def test_an_empty_partition_follows_its_log() -> None:
    partition = share_partition()
    move_log_start(partition, 7)
    assert (partition.start_offset, partition.next_fetch_offset()) == (7, 7)
    move_log_start(partition, 3)
    assert partition.start_offset == 7


def test_what_was_available_before_the_logs_start_is_archived() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 4), (5, 9), batch_size=5)
    write(partition, say(partition, "m1", 0, 4, RELEASE))
    move_log_start(partition, 7)
    assert states(partition) == ["0-4 archived 1", "5-9 acquired 1 m1"]
    assert partition.start_offset == 7


def test_what_is_acquired_before_the_logs_start_is_archived_once_it_is_let_go() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 9))
    move_log_start(partition, 7)
    assert write(partition, release(partition, "m1")) == [(0, 6, 4, 1), (7, 9, 0, 1)]
    assert partition.delivery_complete_count == 0
    assert fetch(partition, "m1", (7, 9)) == [(7, 9, 2)]


def test_a_start_that_moves_onto_what_is_done_with_moves_on() -> None:
    stored = [StateBatch(0, 4, 0, 1), StateBatch(5, 14, 2, 1)]
    partition = share_partition(start=0, batches=stored, limits=Limits(max_in_flight_records=10))
    move_log_start(partition, 5)
    assert partition.start_offset == 15
    assert fetch(partition, "m1", (15, 19)) == [(15, 19, 1)]


def test_the_count_of_what_is_done_with_follows_the_start_offset() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 4), (5, 9), (10, 14), batch_size=5)
    write(partition, say(partition, "m1", 5, 9, ACCEPT))
    assert partition.delivery_complete_count == 5
    move_log_start(partition, 7)
    assert partition.delivery_complete_count == 3
    write(partition, expire(partition, LATER_MS))
    assert (partition.start_offset, partition.delivery_complete_count) == (10, 0)


def test_a_loaded_partition_counts_what_is_done_with() -> None:
    partition = share_partition(start=0, batches=[StateBatch(0, 4, 0, 1), StateBatch(5, 9, 2, 1)])
    assert partition.delivery_complete_count == 5
    assert partition.next_fetch_offset() == 0


def test_a_loaded_partition_begins_behind_what_is_done_with() -> None:
    partition = share_partition(start=0, batches=[StateBatch(0, 4, 4, 5), StateBatch(5, 9, 0, 1)])
    assert (partition.start_offset, partition.delivery_complete_count) == (5, 0)
