"""Tests records that wait for their time or their key: which member may acquire them, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from coordinator.share.batches import StateBatch
from coordinator.share_partition.expiry import move_log_start
from coordinator.share_partition.holdback import LARGEST_BATCH, Facts, HoldbackRules, hold_back
from coordinator.share_partition.request import FetchedBatch
from coordinator.share_partition.run import Limits
from coordinator.share_partition.share_partition import SharePartition
from tests.coordinator.share_partition.given import (
    ACCEPT,
    NOW_MS,
    REJECT,
    RELEASE,
    buried,
    expire,
    fail,
    fetch,
    holdback_of,
    release,
    say,
    share_partition,
    states,
    write,
)

LIMITS = Limits(max_delivery_count=3, lock_duration_ms=1_000)
BY_KEY = HoldbackRules(by_key=True)
BY_TIME = HoldbackRules("due", 10**9)
BY_BOTH = HoldbackRules("due", 10**9, True)
LATER_MS = NOW_MS + 1_000


def held_back(
    rules: HoldbackRules,
    *batches: tuple[int, int],
    stored: tuple[StateBatch, ...] = (),
    limits: Limits = LIMITS,
    **facts: object,
) -> SharePartition:
    """Returns a share partition that has learned the log's batches."""
    partition = share_partition(0, stored, limits)
    hold_back(partition, rules)
    learn(partition, *batches, **facts)  # type: ignore[arg-type]
    return partition


def learn(
    partition: SharePartition,
    *batches: tuple[int, int],
    keys: Mapping[int, int] | None = None,
    times: Mapping[int, int] | None = None,
    now_ms: int = NOW_MS,
) -> None:
    assert partition.holdback is not None
    first = holdback_of(partition).frontier(partition)
    holdback_of(partition).learn(partition, Facts(first, batches[-1][1], batches, keys or {}, times or {}), now_ms)


def take(
    partition: SharePartition, member: str, last: int = 100, most: int = 100, now_ms: int = NOW_MS
) -> list[tuple[int, int, int]]:
    """Returns the ranges that the member acquires, reading from its next offset."""
    assert partition.holdback is not None
    offset = holdback_of(partition).next_offset(partition, member)
    return (
        []
        if offset is None
        else fetch(partition, member, (offset, last), offset=offset, max_records=most, now_ms=now_ms)
    )


Step = Callable[[SharePartition], object]

EARLIER: dict[str, tuple[Step, list[tuple[int, int, int]], list[tuple[int, int, int]]]] = {
    # what becomes of record 0, which m1 has: what m1 gets then, and what m2 would get instead
    "acquired": (lambda p: None, [(1, 1, 1)], []),
    "accept being written": (lambda p: say(p, "m1", 0, 0, ACCEPT), [(1, 1, 1)], []),
    "accepted": (lambda p: write(p, say(p, "m1", 0, 0, ACCEPT)), [(1, 1, 1)], [(1, 1, 1)]),
    "accept not written": (lambda p: fail(p, say(p, "m1", 0, 0, ACCEPT)), [(1, 1, 1)], []),
    "reject being written": (lambda p: say(p, "m1", 0, 0, REJECT), [(1, 1, 1)], []),
    "rejected": (lambda p: write(p, say(p, "m1", 0, 0, REJECT)), [(1, 1, 1)], [(1, 1, 1)]),
    "release being written": (lambda p: say(p, "m1", 0, 0, RELEASE), [], []),
    "released": (lambda p: write(p, say(p, "m1", 0, 0, RELEASE)), [(0, 0, 2), (1, 1, 1)], [(0, 0, 2), (1, 1, 1)]),
    "member gone": (lambda p: write(p, release(p, "m1")), [(0, 0, 2), (1, 1, 1)], [(0, 0, 2), (1, 1, 1)]),
    "lock ran out": (lambda p: expire(p, LATER_MS), [(0, 0, 2), (1, 1, 1)], [(0, 0, 2), (1, 1, 1)]),
    "gone from the log": (lambda p: move_log_start(p, 1), [(1, 1, 1)], [(1, 1, 1)]),
}


@pytest.mark.parametrize("earlier", EARLIER)
@pytest.mark.parametrize("member", ["m1", "m2"])
def test_a_record_waits_for_the_earlier_one_of_its_key(earlier: str, member: str) -> None:
    step, same, other = EARLIER[earlier]
    partition = held_back(BY_KEY, (0, 1), keys={0: 7, 1: 7})
    assert take(partition, "m1", most=1) == [(0, 0, 1)]
    step(partition)
    assert take(partition, member) == (same if member == "m1" else other)


def test_a_record_given_up_frees_its_key_before_its_dead_letter_is_written() -> None:
    partition = held_back(BY_KEY, (0, 1), keys={0: 7, 1: 7}, limits=LIMITS._replace(has_dead_letters=True))
    take(partition, "m1", most=1)
    write(partition, say(partition, "m1", 0, 0, REJECT))
    assert states(partition) == ["0-0 archiving 1", "1-1 available 0"]
    assert take(partition, "m2") == [(1, 1, 1)]
    write(partition, buried(partition, [(0, 0)]))
    assert partition.start_offset == 1


def test_a_pause_holds_its_key_and_no_other() -> None:
    limits = LIMITS._replace(redelivery_backoff_ms=500)
    partition = held_back(BY_KEY, (0, 2), keys={0: 7, 1: 7, 2: 8}, limits=limits)
    take(partition, "m1", most=1)
    write(partition, say(partition, "m1", 0, 0, RELEASE))
    assert take(partition, "m2") == [(2, 2, 1)]
    expire(partition, NOW_MS + 500)
    assert take(partition, "m2") == [(0, 0, 2), (1, 1, 1)]


def test_a_delay_holds_its_key_and_no_other() -> None:
    partition = held_back(BY_BOTH, (0, 2), keys={0: 7, 1: 7, 2: 8}, times={0: NOW_MS + 495})
    assert take(partition, "m1") == [(2, 2, 1)]
    assert partition.next_deadline_ms() == NOW_MS + 500
    expire(partition, NOW_MS + 499)
    assert take(partition, "m1") == []
    expire(partition, NOW_MS + 500)
    assert take(partition, "m1") == [(0, 1, 1)]


def test_what_a_member_keeps_of_a_key_keeps_others_from_what_it_let_go() -> None:
    partition = held_back(BY_KEY, (0, 2), keys={0: 7, 1: 7, 2: 7})
    assert take(partition, "m1", most=2) == [(0, 1, 1)]
    write(partition, say(partition, "m1", 0, 0, RELEASE))
    assert take(partition, "m2") == []
    assert take(partition, "m1") == [(0, 0, 2), (2, 2, 1)]


def test_records_without_a_key_wait_for_nobody() -> None:
    partition = held_back(BY_KEY, (0, 4), keys={0: 7, 2: 7})
    assert take(partition, "m1", most=1) == [(0, 0, 1)]
    assert take(partition, "m2") == [(1, 1, 1), (3, 4, 1)]


def test_delays_are_no_delivery_and_start_over_from_the_log() -> None:
    times = {1: NOW_MS + 500, 2: NOW_MS + 500}
    partition = held_back(BY_TIME, (0, 4), times=times)
    assert take(partition, "m1") == [(0, 0, 1), (3, 4, 1)]
    (stored,) = write(partition, say(partition, "m1", 3, 4, ACCEPT))
    again = held_back(BY_TIME, (0, 4), times=times, stored=(StateBatch(*stored),))
    assert states(again) == ["0-0 available 0", "1-2 delayed 0", "3-4 acknowledged 1"]
    assert (again.start_offset, again.delivery_complete_count, again.in_flight_count) == (0, 2, 5)
    assert take(again, "m1") == [(0, 0, 1)]
    write(again, say(again, "m1", 0, 0, ACCEPT))
    assert again.start_offset == 1
    expire(again, NOW_MS + 500)
    assert take(again, "m1") == [(1, 2, 1)]
    write(again, say(again, "m1", 1, 2, ACCEPT))
    assert (again.start_offset, again.delivery_complete_count) == (5, 0)


def test_a_record_that_was_delivered_before_a_restart_is_not_delayed_again() -> None:
    partition = held_back(BY_TIME, (0, 0), times={0: NOW_MS + 500}, stored=(StateBatch(0, 0, 0, 1),))
    assert take(partition, "m1") == [(0, 0, 2)]


def test_nothing_is_acquired_that_is_not_learned() -> None:
    partition = held_back(BY_KEY, (0, 1), stored=(StateBatch(0, 5, 0, 1),))
    assert take(partition, "m1") == [(0, 1, 2)]
    assert fetch(partition, "m2", (0, 5), offset=2) == []
    learn(partition, (2, 5))
    assert take(partition, "m2") == [(2, 5, 2)]


def test_no_more_is_learned_than_there_is_room_for() -> None:
    limits = LIMITS._replace(max_in_flight_records=10)
    partition = held_back(BY_TIME, (0, 5), times={0: NOW_MS + 500}, limits=limits)
    assert partition.holdback is not None
    learnable = holdback_of(partition).learnable
    assert learnable(partition, [FetchedBatch(0, 5), FetchedBatch(6, 9), FetchedBatch(10, 11)]) == [FetchedBatch(6, 9)]
    assert learnable(partition, [FetchedBatch(6, 12), FetchedBatch(13, 14)]) == [FetchedBatch(6, 12)]
    assert learnable(partition, [FetchedBatch(6, 1_000)]) == []
    with_more_room = held_back(BY_TIME, (0, 4), limits=limits)
    assert with_more_room.holdback is not None
    assert holdback_of(with_more_room).learnable(with_more_room, [FetchedBatch(5, 1_000)]) == [FetchedBatch(5, 9)]
    learn(partition, (6, 9))
    assert take(partition, "m1") == [(1, 9, 1)]
    assert holdback_of(partition).next_offset(partition, "m1") is None
    write(partition, say(partition, "m1", 1, 9, ACCEPT))
    assert holdback_of(partition).next_offset(partition, "m1") is None
    expire(partition, NOW_MS + 500)
    take(partition, "m1")
    write(partition, say(partition, "m1", 0, 0, ACCEPT))
    assert holdback_of(partition).next_offset(partition, "m1") == 10


def test_what_compaction_took_away_is_passed_over() -> None:
    partition = held_back(BY_KEY, (10_000_000, 10_000_001), keys={10_000_000: 7})
    assert partition.start_offset == 10_000_000
    assert take(partition, "m1", last=10_000_001) == [(10_000_000, 10_000_001, 1)]
    learn(partition, (20_000_000, 20_000_000))
    assert len(partition.cache) == 3


def test_a_share_partition_remembers_keys_of_what_is_in_flight_only() -> None:
    partition = held_back(BY_KEY, (0, 99), keys=dict.fromkeys(range(100), 7))
    take(partition, "m1", most=60)
    write(partition, say(partition, "m1", 0, 59, ACCEPT))
    learn(partition, (100, 100), keys={100: 7})
    assert partition.holdback is not None
    assert sorted(holdback_of(partition).keys) == list(range(60, 101))


def test_records_that_fail_again_and_again_come_alone() -> None:
    limits = LIMITS._replace(max_delivery_count=5)
    partition = held_back(BY_KEY, (0, LARGEST_BATCH - 1), limits=limits)
    portions = []
    for _ in range(4):
        portions.append(take(partition, "m1"))
        first, last, _ = portions[-1][0]
        write(partition, say(partition, "m1", first, last, RELEASE))
    assert portions == [[(0, 63, 1)], [(0, 63, 2)], [(0, 63, 3)], [(0, 31, 4)]]
    assert take(partition, "m1") == [(0, 0, 5)]
    assert take(partition, "m2") == [(1, 1, 5)]


def test_options_that_go_leave_everything_to_be_had() -> None:
    partition = held_back(BY_BOTH, (0, 3), keys={0: 7, 1: 7}, times={2: NOW_MS + 500})
    assert take(partition, "m1", most=1) == [(0, 0, 1)]
    hold_back(partition, HoldbackRules())
    assert partition.holdback is None
    assert partition.next_fetch_offset() == 1
    assert fetch(partition, "m2", (0, 3)) == [(1, 3, 1)]


def test_options_that_come_hold_back_what_is_known_by_then() -> None:
    partition = share_partition(limits=LIMITS)
    assert fetch(partition, "m1", (0, 1)) == [(0, 1, 1)]
    hold_back(partition, BY_KEY)
    learn(partition, (0, 1), (2, 3), keys={0: 7, 2: 7, 3: 8})
    assert take(partition, "m2") == [(3, 3, 1)]
