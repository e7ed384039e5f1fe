"""Tests the in-sync replicas, by cases: which records are committed, which replicas may join or must leave."""

from __future__ import annotations

import pytest

from coordinator.replication.isr import NO_OFFSET, Follower, Isr, IsrRules
from coordinator.replication.roles import Leading

LEADER, A, B = 1, 2, 3
NOW_MS, MAX_LAG_MS = 1_000_000, 30_000
END = 10


def isr(*committed: int) -> Isr:
    return Isr(frozenset(committed))


def rules(*eligible: int) -> IsrRules:
    return IsrRules(lambda follower: follower.replica_id in eligible, lambda: MAX_LAG_MS)


def leading(state: Isr, *followers: Follower, epoch_start: int = 0) -> Leading:
    return Leading(LEADER, 0, epoch_start, state, {follower.replica_id: follower for follower in followers})


def at(replica_id: int, offset: int, *, caught_up_ms: int = NOW_MS - 2 * MAX_LAG_MS) -> Follower:
    return Follower(replica_id, offset, caught_up_ms=caught_up_ms)


@pytest.mark.parametrize(
    ("state", "followers", "min_isr", "eligible", "offset"),
    [
        pytest.param(isr(LEADER), [], 1, (), END, id="alone"),
        pytest.param(isr(LEADER, A), [at(A, 7)], 1, (A,), 7, id="the slowest in sync"),
        pytest.param(isr(LEADER, A, B), [at(A, 7), at(B, 4)], 1, (A, B), 4, id="the slowest of several"),
        pytest.param(isr(LEADER, A), [at(A, 7), at(B, 4)], 1, (A, B), 7, id="who is out does not count"),
        pytest.param(isr(LEADER, A), [at(A, NO_OFFSET)], 1, (A,), NO_OFFSET, id="who has not fetched yet holds it"),
        pytest.param(isr(LEADER), [at(A, 7)], 2, (A,), NO_OFFSET, id="nothing below min.insync.replicas"),
        pytest.param(isr(LEADER).expand([A]), [at(A, 7)], 1, (A,), 7, id="who may be in already counts"),
        pytest.param(isr(LEADER, A).shrink([A]), [at(A, 7)], 1, (A,), 7, id="who may be in still counts"),
        pytest.param(isr(LEADER).expand([A]), [at(A, 7)], 2, (A,), NO_OFFSET, id="who may be in is not enough yet"),
        pytest.param(isr(LEADER), [at(A, 7, caught_up_ms=NOW_MS)], 1, (A,), 7, id="who is caught up and may join"),
        pytest.param(isr(LEADER), [at(A, 7, caught_up_ms=NOW_MS)], 1, (), END, id="who is caught up and may not"),
        pytest.param(isr(LEADER, A), [at(A, END + 3)], 1, (A,), END, id="a follower that is ahead commits nothing"),
    ],
)
def test_what_is_committed(
    state: Isr, followers: list[Follower], min_isr: int, eligible: tuple[int, ...], offset: int
) -> None:
    role = leading(state, *followers)
    assert role.committed_offset(END, min_isr, rules(*eligible), NOW_MS) == offset


@pytest.mark.parametrize(
    ("state", "offset", "eligible", "joins"),
    [
        pytest.param(isr(LEADER), 8, (A,), True, id="it has what is committed"),
        pytest.param(isr(LEADER), 7, (A,), False, id="it lacks something committed"),
        pytest.param(isr(LEADER), 8, (), False, id="its broker is fenced, or another by now"),
        pytest.param(isr(LEADER, A), 8, (A,), False, id="it is in"),
        pytest.param(isr(LEADER, B).shrink([B]), 8, (A,), False, id="another change is on its way"),
    ],
)
def test_who_may_join(state: Isr, offset: int, eligible: tuple[int, ...], joins: bool) -> None:
    role = leading(state, at(A, offset), epoch_start=5)
    assert role.may_join(role.followers[A], 8, rules(*eligible)) is joins


def test_who_lacks_records_of_earlier_epochs_may_not_join() -> None:
    assert not leading(isr(LEADER), at(A, 4), epoch_start=5).may_join(at(A, 4), 3, rules(A))


@pytest.mark.parametrize(
    ("state", "follower", "left"),
    [
        pytest.param(isr(LEADER, A), at(A, 7), {A}, id="behind for too long"),
        pytest.param(isr(LEADER, A), at(A, 7, caught_up_ms=NOW_MS - MAX_LAG_MS), set(), id="not long enough"),
        pytest.param(isr(LEADER, A), at(A, END), set(), id="at the end, however long it was silent"),
        pytest.param(isr(LEADER), at(A, 7), set(), id="out already"),
        pytest.param(isr(LEADER, A, B).shrink([B]), at(A, 7), set(), id="another change is on its way"),
    ],
)
def test_who_has_to_leave(state: Isr, follower: Follower, left: set[int]) -> None:
    proposed = leading(state, follower).late(END, rules(A), NOW_MS)
    assert (set() if proposed is None else proposed.shrinking) == left


def test_a_change_is_wished_for_until_it_is_answered() -> None:
    assert isr(LEADER).expand([A]).proposed == {LEADER, A}
    assert isr(LEADER, A).shrink([A]).proposed == {LEADER}
    assert isr(LEADER).expand([A]).rolled_back() == isr(LEADER)
    assert isr(LEADER).is_settled
    assert not isr(LEADER).expand([A]).is_settled


def test_a_follower_is_caught_up_as_of_the_fetch_before_where_it_has_what_was_there_then() -> None:
    slow = Follower(A).fetched(0, 0, 5, 1_000, -1)
    assert not slow.is_caught_up(5, 1_000 + MAX_LAG_MS, MAX_LAG_MS)
    slow = slow.fetched(5, 0, 9, 2_000, -1)
    assert (slow.log_end_offset, slow.caught_up_ms) == (5, 1_000)
    assert slow.fetched(9, 0, 9, 3_000, -1).caught_up_ms == 3_000


def test_a_follower_that_was_truncated_is_where_it_says() -> None:
    assert Follower(A).fetched(9, 0, 9, 1_000, -1).fetched(4, 0, 9, 2_000, -1).log_end_offset == 4


def test_a_new_epoch_gives_who_is_in_sync_time_to_show_it() -> None:
    follower = Follower(A).fetched(5, 0, 5, 1_000, 8)
    in_sync = follower.in_new_epoch(7, in_sync=True, now_ms=NOW_MS)
    assert (in_sync.log_end_offset, in_sync.broker_epoch, in_sync.is_caught_up(7, NOW_MS, MAX_LAG_MS)) == (5, 8, True)
    assert not follower.in_new_epoch(7, in_sync=False, now_ms=NOW_MS).is_caught_up(7, NOW_MS, MAX_LAG_MS)
