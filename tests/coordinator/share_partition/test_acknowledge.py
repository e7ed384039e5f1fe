"""Tests acknowledgements: the written records, commits and undone changes."""

from __future__ import annotations

from functools import partial

import pytest

from coordinator.engine.result import Ticket
from coordinator.share_partition.acknowledge import Acknowledgement, withdraw
from coordinator.share_partition.acknowledge import write as write_part
from coordinator.share_partition.run import Limits
from coordinator.share_partition.share_partition import PIECE, SharePartition
from protocol.errors import ErrorCode, KafkaError
from tests.coordinator.share_partition.given import (
    ACCEPT,
    GAP,
    NOW_MS,
    REJECT,
    RELEASE,
    RENEW,
    acknowledge,
    acknowledge_part,
    changed,
    expire,
    fail,
    fetch,
    say,
    share_partition,
    states,
    write,
)


def error_of(partition: SharePartition, member: str, first: int, last: int, *types: int) -> ErrorCode:
    before = states(partition), partition.delivery_complete_count
    with pytest.raises(KafkaError) as error:
        say(partition, member, first, last, *types)
    assert (states(partition), partition.delivery_complete_count) == before
    return error.value.code


def test_a_whole_batch_is_one_state_batch_and_leaves_the_cache() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 9))
    change = say(partition, "m1", 0, 9, ACCEPT)
    assert change is not None
    assert (change.start_offset, change.delivery_complete_count) == (0, 10)
    assert states(partition) == ["0-9 acknowledged 1…"]
    assert write(partition, change) == [(0, 9, 2, 1)]
    assert (partition.start_offset, partition.end_offset, partition.delivery_complete_count) == (10, 10, 0)
    assert states(partition) == []


def test_each_record_may_be_spoken_of_differently() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 5))
    change = say(partition, "m1", 0, 5, ACCEPT, ACCEPT, REJECT, RELEASE, GAP, ACCEPT)
    assert write(partition, change) == [(0, 1, 2, 1), (2, 2, 4, 1), (3, 3, 0, 1), (4, 4, 4, 1), (5, 5, 2, 1)]
    assert partition.start_offset == 3
    assert partition.delivery_complete_count == 2
    assert states(partition)[1:] == ["3-3 available 1", "4-4 archived 1", "5-5 acknowledged 1"]
    assert partition.next_fetch_offset() == 3


def test_a_part_of_a_batch_moves_the_start_offset_into_it() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 9))
    write(partition, say(partition, "m1", 0, 3, ACCEPT))
    assert partition.start_offset == 4
    write(partition, say(partition, "m1", 6, 9, ACCEPT))
    assert (partition.start_offset, partition.delivery_complete_count) == (4, 4)
    write(partition, say(partition, "m1", 4, 5, ACCEPT))
    assert partition.start_offset == 10


def test_an_acknowledgement_may_span_batches() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 4), (5, 9), (10, 14), batch_size=5)
    assert write(partition, say(partition, "m1", 2, 12, ACCEPT)) == [(2, 4, 2, 1), (5, 9, 2, 1), (10, 12, 2, 1)]
    assert partition.start_offset == 0


def test_a_record_released_past_its_delivery_limit_is_archived() -> None:
    partition = share_partition(limits=Limits(max_delivery_count=2))
    fetch(partition, "m1", (0, 0))
    write(partition, say(partition, "m1", 0, 0, RELEASE))
    fetch(partition, "m1", (0, 0))
    assert write(partition, say(partition, "m1", 0, 0, RELEASE)) == [(0, 0, 4, 2)]
    assert partition.start_offset == 1


def test_a_rejected_record_waits_for_the_dead_letter_queue_if_there_is_one() -> None:
    partition = share_partition(limits=Limits(has_dead_letters=True))
    fetch(partition, "m1", (0, 1))
    assert write(partition, say(partition, "m1", 0, 1, REJECT, ACCEPT)) == [(0, 0, 3, 1), (1, 1, 2, 1)]
    assert [(run.first, run.last) for run in partition.to_bury()] == [(0, 0)]
    assert partition.start_offset == 0


def test_a_write_that_fails_leaves_the_records_with_their_member() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 9))
    fail(partition, say(partition, "m1", 0, 9, ACCEPT))
    assert states(partition) == ["0-9 acquired 1 m1"]
    assert partition.delivery_complete_count == 0
    write(partition, say(partition, "m1", 0, 9, ACCEPT))
    assert partition.start_offset == 10


def test_a_write_that_fails_after_the_lock_ran_out_releases_the_records() -> None:
    partition = share_partition(limits=Limits(lock_duration_ms=100, max_delivery_count=2))
    fetch(partition, "m1", (0, 9))
    fail(partition, say(partition, "m1", 0, 9, ACCEPT), NOW_MS + 100)
    assert states(partition) == ["0-9 available 1"]
    assert partition.next_fetch_offset() == 0


def test_a_write_that_fails_after_the_last_lock_ran_out_gives_the_records_up() -> None:
    partition = share_partition(limits=Limits(lock_duration_ms=100, max_delivery_count=1))
    fetch(partition, "m1", (0, 9))
    fail(partition, say(partition, "m1", 0, 9, ACCEPT), NOW_MS + 100)
    assert (partition.start_offset, partition.delivery_complete_count) == (10, 0)


def test_a_second_acknowledgement_is_refused_while_the_first_is_written() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 9))
    first = say(partition, "m1", 0, 9, ACCEPT)
    assert error_of(partition, "m1", 0, 9, RELEASE) is ErrorCode.INVALID_RECORD_STATE
    assert error_of(partition, "m1", 2, 3, RELEASE) is ErrorCode.INVALID_RECORD_STATE
    write(partition, first)
    assert partition.start_offset == 10


def test_only_who_has_a_record_may_speak_of_it() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 4))
    fetch(partition, "m2", (5, 9))
    assert error_of(partition, "m2", 0, 4, ACCEPT) is ErrorCode.INVALID_RECORD_STATE
    assert error_of(partition, "m2", 0, 9, ACCEPT) is ErrorCode.INVALID_RECORD_STATE
    assert error_of(partition, "m1", 0, 9, ACCEPT) is ErrorCode.INVALID_RECORD_STATE


def test_what_was_released_is_nobodys() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 4))
    write(partition, say(partition, "m1", 0, 4, RELEASE))
    assert error_of(partition, "m1", 0, 4, ACCEPT) is ErrorCode.INVALID_RECORD_STATE


def test_offsets_that_are_not_in_flight_are_refused() -> None:
    partition = share_partition()
    assert error_of(partition, "m1", 0, 4, ACCEPT) is ErrorCode.INVALID_RECORD_STATE
    fetch(partition, "m1", (0, 4))
    assert error_of(partition, "m1", 5, 9, ACCEPT) is ErrorCode.INVALID_REQUEST
    assert error_of(partition, "m1", 2, 9, ACCEPT) is ErrorCode.INVALID_REQUEST


def test_one_bad_acknowledgement_undoes_the_good_ones_of_the_request() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 4), (5, 9), batch_size=5)
    with pytest.raises(KafkaError):
        acknowledge(partition, "m1", [Acknowledgement(0, 4, [ACCEPT]), Acknowledgement(5, 12, [ACCEPT])], NOW_MS)
    assert states(partition) == ["0-4 acquired 1 m1", "5-9 acquired 1 m1"]


def test_what_lies_below_the_start_offset_is_passed_over() -> None:
    partition = share_partition()
    fetch(partition, "m1", (0, 9))
    write(partition, say(partition, "m1", 0, 3, ACCEPT))
    assert say(partition, "m1", 0, 3, ACCEPT) is None
    assert write(partition, say(partition, "m1", 0, 9, ACCEPT)) == [(4, 9, 2, 1)]


def test_a_lock_is_renewed_without_a_write() -> None:
    partition = share_partition(limits=Limits(lock_duration_ms=100))
    fetch(partition, "m1", (0, 9))
    assert say(partition, "m1", 0, 9, RENEW, now_ms=NOW_MS + 50) is None
    assert [run.lock_until_ms for batch in partition.cache for run in batch.runs] == [NOW_MS + 150]


def test_a_part_is_renewed_alone() -> None:
    partition = share_partition(limits=Limits(lock_duration_ms=100))
    fetch(partition, "m1", (0, 9))
    say(partition, "m1", 0, 4, RENEW, now_ms=NOW_MS + 50)
    assert [run.lock_until_ms - NOW_MS for batch in partition.cache for run in batch.runs] == [150, 100]


def test_no_lock_is_renewed_where_the_group_does_not_allow_it() -> None:
    partition = share_partition(limits=Limits(renew_enabled=False))
    fetch(partition, "m1", (0, 9))
    assert error_of(partition, "m1", 0, 9, RENEW) is ErrorCode.INVALID_RECORD_STATE


SIZE = 3 * PIECE
TYPES = [ACCEPT, RELEASE] * (SIZE // 2)
LONG_LIMITS = Limits(max_in_flight_records=SIZE)


def test_an_acknowledgement_that_is_given_up_between_parts_changes_nothing() -> None:
    partition = share_partition(limits=LONG_LIMITS)
    fetch(partition, "m1", (0, SIZE - 1))
    part = acknowledge_part(partition, "m1", [Acknowledgement(0, SIZE - 1, TYPES)], is_first=True)
    assert error_of(partition, "m1", 0, 0, ACCEPT) is ErrorCode.INVALID_RECORD_STATE
    changed(partition, partial(withdraw, partition, [part.record], Ticket(), NOW_MS))
    assert states(partition) == [f"0-{SIZE - 1} acquired 1 m1"]


def test_an_acknowledgement_whose_records_are_released_between_parts_changes_nothing() -> None:
    partition = share_partition(limits=LONG_LIMITS)
    fetch(partition, "m1", (0, SIZE - 1))
    part = acknowledge_part(partition, "m1", [Acknowledgement(0, SIZE - 1, TYPES)], is_first=True)
    later_ms = NOW_MS + LONG_LIMITS.lock_duration_ms
    expire(partition, later_ms)
    assert states(partition)[-1] == f"{PIECE}-{SIZE - 1} available 1"
    with pytest.raises(KafkaError, match="not in the acquired state"):
        acknowledge_part(partition, "m1", part.remaining, is_first=False)
    changed(partition, partial(withdraw, partition, [part.record], Ticket(), later_ms))
    assert states(partition) == [f"0-{SIZE - 1} available 1"]


def test_the_parts_of_a_long_acknowledgement_are_written_one_by_one() -> None:
    partition = share_partition(limits=LONG_LIMITS)
    fetch(partition, "m1", (0, SIZE - 1))
    parts = [acknowledge_part(partition, "m1", [Acknowledgement(0, SIZE - 1, TYPES)], is_first=True)]
    while parts[-1].remaining:
        parts.append(acknowledge_part(partition, "m1", parts[-1].remaining, is_first=False))
    assert len(parts) == 3
    written = []
    for part in parts:
        written += write(partition, changed(partition, partial(write_part, part.record, Ticket(), NOW_MS))[0])
    assert written == [(offset, offset, 2 - offset % 2 * 2, 1) for offset in range(SIZE)]
    assert partition.start_offset == 1
