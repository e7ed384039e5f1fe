"""Tests the description of a share partition: its ranges, and why the records of each are not delivered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.share.batches import StateBatch
from coordinator.share_partition.description import LogAndMembers, describe
from coordinator.share_partition.expiry import move_log_start
from coordinator.share_partition.holdback import HoldbackRules
from coordinator.share_partition.run import Limits
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import ACKNOWLEDGED, AVAILABLE
from protocol.messages.describe_share_group_records import NOT_IN_FLIGHT, DeliveryReason, RecordRange
from tests.coordinator.share_partition.given import (
    ACCEPT,
    NOW_MS,
    REJECT,
    RELEASE,
    expire,
    fetch,
    say,
    share_partition,
    states,
    write,
)
from tests.coordinator.share_partition.test_holdback import BY_BOTH, BY_KEY, BY_TIME, held_back, take

LIMITS = Limits(max_delivery_count=3, lock_duration_ms=1_000)
MOST = 1000
HIGHEST = 1 << 63

BUSY = LogAndMembers(10, 10, 1, 0)
"""A log of ten records, and a member that has other records."""


def described(
    partition: SharePartition, around: LogAndMembers = BUSY, first: int = -1, most: int = MOST
) -> list[tuple[int, int, str]]:
    return [
        (one.first_offset, one.last_offset, DeliveryReason(one.reason).name)
        for one in ranges(partition, around, first, most)
    ]


def ranges(
    partition: SharePartition, around: LogAndMembers = BUSY, first: int = -1, most: int = MOST
) -> list[RecordRange]:
    return describe(partition, around, first, most).ranges


def acquired(last: int = 4, limits: Limits = LIMITS) -> SharePartition:
    partition = share_partition(limits=limits)
    fetch(partition, "m1", (0, last))
    return partition


def test_each_state_has_its_reason() -> None:
    partition = acquired(limits=LIMITS._replace(has_dead_letters=True, redelivery_backoff_ms=500))
    write(partition, say(partition, "m1", 1, 1, ACCEPT))
    write(partition, say(partition, "m1", 2, 2, RELEASE))
    write(partition, say(partition, "m1", 3, 3, REJECT))
    say(partition, "m1", 4, 4, ACCEPT)
    assert described(partition) == [
        (0, 0, "HELD"),
        (1, 1, "DONE"),
        (2, 2, "BACKOFF"),
        (3, 3, "BURYING"),
        (4, 4, "CHANGING"),
        (5, 9, "NOT_FETCHED"),
    ]


def test_a_range_has_the_member_the_time_and_the_deliveries() -> None:
    (held, rest) = ranges(acquired())
    assert (held.delivery_state, held.delivery_count, held.member_id, held.until_ms) == (1, 1, "m1", NOW_MS + 1_000)
    assert (rest.delivery_state, rest.delivery_count, rest.member_id, rest.until_ms) == (NOT_IN_FLIGHT, 0, None, -1)


def test_a_change_that_is_not_written_yet_is_not_shown_as_the_state() -> None:
    partition = acquired()
    change = say(partition, "m1", 0, 4, ACCEPT)
    (held, _) = ranges(partition)
    assert (held.delivery_state, held.member_id, held.reason) == (1, "m1", DeliveryReason.CHANGING)
    write(partition, change)
    assert described(partition) == [(5, 9, "NOT_FETCHED")]


def test_a_pause_has_its_end() -> None:
    partition = acquired(0, LIMITS._replace(redelivery_backoff_ms=500))
    write(partition, say(partition, "m1", 0, 0, RELEASE))
    (paused, _) = ranges(partition)
    assert (paused.delivery_state, paused.until_ms, paused.member_id) == (-1, NOW_MS + 500, None)
    expire(partition, NOW_MS + 500)
    assert next((one.reason, one.until_ms) for one in ranges(partition)) == (DeliveryReason.NOT_FETCHED, -1)


def test_a_delivery_time_is_not_a_pause() -> None:
    partition = held_back(BY_TIME, (0, 1), times={1: NOW_MS + 500})
    assert described(partition) == [(0, 0, "NOT_FETCHED"), (1, 1, "SCHEDULED"), (2, 9, "NOT_FETCHED")]


MEMBERS = {
    "no member": (BUSY._replace(session_count=0), DeliveryReason.NO_MEMBER),
    "busy members": (BUSY, DeliveryReason.NOT_FETCHED),
    "a waiting fetch": (BUSY._replace(waiting_count=1), DeliveryReason.OFFERED),
}


@pytest.mark.parametrize("members", MEMBERS)
def test_records_that_any_member_may_acquire_wait_for_a_fetch(members: str) -> None:
    around, reason = MEMBERS[members]
    partition = acquired()
    write(partition, say(partition, "m1", 0, 4, RELEASE))
    assert [(one.first_offset, one.delivery_state, one.reason) for one in ranges(partition, around)] == [
        (0, AVAILABLE, reason),
        (5, NOT_IN_FLIGHT, reason),
    ]


def test_a_record_waits_for_the_member_that_has_its_key() -> None:
    partition = held_back(BY_KEY, (0, 4), keys={0: 7, 1: 8, 2: 7, 3: 7})
    take(partition, "m1", most=1)
    assert [(one.first_offset, one.last_offset, one.waits_for) for one in ranges(partition)] == [
        (0, 0, -1),
        (1, 1, -1),
        (2, 3, 0),
        (4, 4, -1),
        (5, 9, -1),
    ]
    assert (2, 3, "KEY_HELD") in described(partition)


def test_a_record_waits_for_a_later_one_that_a_member_kept() -> None:
    partition = held_back(BY_KEY, (0, 1), keys={0: 7, 1: 7})
    take(partition, "m1", most=2)
    write(partition, say(partition, "m1", 0, 0, RELEASE))
    assert ranges(partition)[0].waits_for == 1


def test_a_record_waits_for_a_delayed_one_of_its_key() -> None:
    partition = held_back(BY_BOTH, (0, 2), keys={0: 7, 1: 7, 2: 8}, times={0: NOW_MS + 500})
    assert described(partition)[:3] == [(0, 0, "SCHEDULED"), (1, 1, "KEY_HELD"), (2, 2, "NOT_FETCHED")]
    assert ranges(partition)[1].waits_for == 0


def test_records_described_as_waiting_are_those_that_no_other_member_gets() -> None:
    partition = held_back(BY_KEY, (0, 5), keys={0: 7, 1: 8, 2: 7, 3: 9, 4: 8, 5: 7})
    take(partition, "m1", most=1)
    take(partition, "m2", most=1)
    waiting = {
        offset
        for first, last, reason in described(partition)
        if reason == "KEY_HELD"
        for offset in range(first, last + 1)
    }
    got = {offset for first, last, _ in take(partition, "m3") for offset in range(first, last + 1)}
    assert (waiting, got) == ({2, 4, 5}, {3})


def test_a_full_window_is_the_reason_of_the_records_after_it() -> None:
    partition = acquired(4, LIMITS._replace(max_in_flight_records=5))
    assert described(partition) == [(0, 4, "HELD"), (5, 9, "WINDOW_FULL")]
    write(partition, say(partition, "m1", 4, 4, RELEASE))
    assert described(partition)[1:] == [(4, 4, "NOT_FETCHED"), (5, 9, "WINDOW_FULL")]


def test_a_full_window_of_a_group_with_order_by_key() -> None:
    partition = held_back(HoldbackRules(by_key=True), (0, 4), limits=LIMITS._replace(max_in_flight_records=5))
    assert described(partition) == [(0, 4, "NOT_FETCHED"), (5, 9, "WINDOW_FULL")]


def test_an_open_transaction_ends_what_a_group_may_read() -> None:
    assert described(acquired(), BUSY._replace(readable_until=7)) == [
        (0, 4, "HELD"),
        (5, 6, "NOT_FETCHED"),
        (7, 9, "OPEN_TRANSACTION"),
    ]
    assert described(acquired(), BUSY._replace(readable_until=3)) == [(0, 4, "HELD"), (5, 9, "OPEN_TRANSACTION")]


def test_offsets_of_a_gap_are_unread_until_they_are_read() -> None:
    stored = (StateBatch(2, 3, ACKNOWLEDGED, 1), StateBatch(6, 6, AVAILABLE, 1))
    partition = share_partition(0, stored, LIMITS)
    assert described(partition) == [
        (0, 1, "UNREAD"),
        (2, 3, "DONE"),
        (4, 5, "UNREAD"),
        (6, 6, "NOT_FETCHED"),
        (7, 9, "NOT_FETCHED"),
    ]
    partition.close_gap(4)
    assert (4, 5, "UNREAD") in described(partition)
    assert described(partition)[0] == (0, 1, "ABSENT")


def test_an_empty_share_partition_has_only_records_that_are_not_fetched() -> None:
    assert described(share_partition(3, limits=LIMITS)) == [(3, 9, "NOT_FETCHED")]
    assert described(share_partition(10, limits=LIMITS)) == []


def test_records_below_the_start_are_not_described() -> None:
    partition = acquired()
    move_log_start(partition, 2)
    assert described(partition)[0] == (2, 4, "HELD")


def test_the_ranges_have_no_holes_and_go_on_page_by_page() -> None:
    partition = acquired(9)
    for offset in range(1, 9, 2):
        write(partition, say(partition, "m1", offset, offset, ACCEPT))
    whole = described(partition, BUSY._replace(high_watermark=20, readable_until=20))
    assert [first for first, _, _ in whole] == [0, *(last + 1 for _, last, _ in whole[:-1])]
    assert whole[-1] == (10, 19, "NOT_FETCHED")
    pages, first = [], 0
    while first >= 0:
        page = describe(partition, BUSY._replace(high_watermark=20, readable_until=20), first, 3)
        assert len(page.ranges) <= 3
        pages += [(one.first_offset, one.last_offset, DeliveryReason(one.reason).name) for one in page.ranges]
        first = page.next_offset
    assert pages == whole


@pytest.mark.parametrize("first", [-HIGHEST, -1, 0, 5, 9, 10, HIGHEST - 1])
@pytest.mark.parametrize("most", [0, 1, MOST])
def test_any_offset_may_be_the_first(first: int, most: int) -> None:
    page = describe(acquired(), BUSY, first, most)
    assert len(page.ranges) <= most
    assert all(one.first_offset >= first for one in page.ranges)
    assert page.next_offset == -1 or page.next_offset > first or most == 0


CHANGES: dict[str, Callable[[SharePartition], object]] = {
    "acquired": lambda partition: None,
    "in a change": lambda partition: say(partition, "m1", 0, 2, ACCEPT),
    "released": lambda partition: write(partition, say(partition, "m1", 0, 2, RELEASE)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_description_changes_nothing(change: str) -> None:
    partition = acquired()
    CHANGES[change](partition)
    before = states(partition), partition.next_fetch_offset(), partition.next_deadline_ms(), partition.in_flight_count
    assert described(partition) == described(partition)
    assert before == (
        states(partition), partition.next_fetch_offset(), partition.next_deadline_ms(), partition.in_flight_count
    )  # fmt: skip
