"""Tests redelivery backoff: released records are offered again after a pause, if the group's options say so."""

from __future__ import annotations

import pytest

from coordinator.share_partition.expiry import move_log_start
from coordinator.share_partition.run import Limits
from protocol.errors import ErrorCode, KafkaError
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

LIMITS = Limits(redelivery_backoff_ms=100, redelivery_backoff_max_ms=150, lock_duration_ms=1_000)


def test_a_released_record_is_offered_again_after_the_pause() -> None:
    partition = share_partition(limits=LIMITS)
    fetch(partition, "m1", (0, 4))
    write(partition, say(partition, "m1", 0, 4, RELEASE))
    assert partition.next_fetch_offset() == 5
    assert fetch(partition, "m2", (0, 4), offset=0) == []
    assert partition.next_deadline_ms() == NOW_MS + 100
    assert expire(partition, NOW_MS + 99) is None
    assert fetch(partition, "m2", (0, 4), offset=0) == []
    assert expire(partition, NOW_MS + 100) is None
    assert partition.next_fetch_offset() == 0
    assert fetch(partition, "m2", (0, 4)) == [(0, 4, 2)]


def test_the_pause_doubles_up_to_the_longest() -> None:
    partition = share_partition(limits=LIMITS)
    pauses = []
    now_ms = NOW_MS
    for _ in range(3):
        fetch(partition, "m1", (0, 0), now_ms=now_ms)
        write(partition, say(partition, "m1", 0, 0, RELEASE, now_ms=now_ms), now_ms)
        pauses.append(next(run.lock_until_ms for batch in partition.cache for run in batch.runs) - now_ms)
        now_ms += 200
        expire(partition, now_ms)
    assert pauses == [100, 150, 150]


def test_a_record_whose_lock_ran_out_waits_as_well() -> None:
    partition = share_partition(limits=LIMITS)
    fetch(partition, "m1", (0, 4))
    write(partition, expire(partition, NOW_MS + 1_000), NOW_MS + 1_000)
    assert partition.next_fetch_offset() == 5
    expire(partition, NOW_MS + 1_100)
    assert partition.next_fetch_offset() == 0


def test_what_follows_goes_on_in_the_meantime() -> None:
    partition = share_partition(limits=LIMITS)
    fetch(partition, "m1", (0, 4))
    write(partition, say(partition, "m1", 0, 4, RELEASE))
    assert fetch(partition, "m1", (5, 9)) == [(5, 9, 1)]
    write(partition, say(partition, "m1", 5, 9, ACCEPT))
    assert partition.start_offset == 0


def test_nobody_can_speak_of_a_record_that_waits() -> None:
    partition = share_partition(limits=LIMITS)
    fetch(partition, "m1", (0, 4))
    write(partition, say(partition, "m1", 0, 4, RELEASE))
    with pytest.raises(KafkaError) as refused:
        say(partition, "m1", 0, 4, ACCEPT)
    assert refused.value.code is ErrorCode.INVALID_RECORD_STATE


def test_a_record_that_waits_vanishes_with_the_log() -> None:
    partition = share_partition(limits=LIMITS)
    fetch(partition, "m1", (0, 4))
    write(partition, say(partition, "m1", 0, 4, RELEASE))
    move_log_start(partition, 3)
    assert states(partition) == ["0-2 archived 1", "3-4 delayed 1"]


def test_a_pause_is_no_part_of_what_is_given_up() -> None:
    partition = share_partition(limits=LIMITS._replace(max_delivery_count=1))
    fetch(partition, "m1", (0, 4))
    write(partition, say(partition, "m1", 0, 4, RELEASE))
    assert partition.start_offset == 5
