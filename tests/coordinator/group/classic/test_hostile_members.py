"""Tests members of classic groups that repeat requests, or stop sending: other members aren't affected."""

from __future__ import annotations

import pytest

from coordinator.engine.machine import EXPIRY_RETRY_MS
from coordinator.engine.result import Result
from coordinator.group.classic.rendezvous import STABLE
from coordinator.group.timers import MAX_RETRY_MS, MAX_RUNS, Timers
from protocol.errors import ErrorCode, KafkaError
from tests.coordinator.group.classic.world import ClassicGroups


def test_a_strategy_that_is_named_twice_counts_once() -> None:
    world = ClassicGroups()
    first = world.join(instance_id="one", strategies=("range", "range"))
    world.advance(10_000)
    assert first.answer.protocol_name == "range"
    second = world.join(instance_id="two", strategies=("sticky", "range"))
    again = world.join(first.answer.member_id, instance_id="one", strategies=("range", "sticky"))
    world.advance(10_000)
    assert [join.answer.error_code for join in (second, again)] == [0, 0]


def test_a_strategy_that_is_named_twice_comes_behind_one_that_is_named_once() -> None:
    world = ClassicGroups()
    only = world.join(instance_id="one", strategies=("roundrobin", "sticky", "roundrobin"))
    world.advance(10_000)
    assert only.answer.protocol_name == "sticky"


@pytest.mark.parametrize("order", [("range", "roundrobin"), ("roundrobin", "range")])
def test_of_strategies_with_as_many_votes_the_first_in_the_order_of_kafkas_map_is_taken(order: tuple[str, str]) -> None:
    world = ClassicGroups()
    joins = [world.join(instance_id="one", strategies=order), world.join(instance_id="two", strategies=order[::-1])]
    world.advance(10_000)
    assert [join.answer.protocol_name for join in joins] == ["range", "range"]


def test_no_strategy_at_all_is_refused() -> None:
    assert ClassicGroups().join(strategies=()).answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("rebalance_ms", [0, -1, -(2**31)])
def test_a_group_of_absent_static_members_without_rebalance_timeout_is_no_endless_work(rebalance_ms: int) -> None:
    world = ClassicGroups()
    (member,) = world.stable(instance_id="one", session_ms=30_000)
    again = world.join(member, instance_id="one", rebalance_ms=rebalance_ms, session_ms=30_000)
    world.sync(member, again.answer.generation_id, {member: b""}, instance_id="one")
    newcomer = world.join("", version=4, rebalance_ms=rebalance_ms)
    world.join(newcomer.answer.member_id, version=4, rebalance_ms=rebalance_ms)
    world.leave(newcomer.answer.member_id)
    expired = 0
    end_ms = world.now_ms + 10_000
    while (due_ms := world.shard.next_deadline_ms()) is not None and due_ms <= end_ms:
        world.now_ms = max(due_ms, world.now_ms)
        world.carry_out(world.shard.expire(world.now_ms))
        expired += 1
        assert expired < 50
    assert member in world.classic.members


def test_a_group_that_changed_its_strategy_is_loaded() -> None:
    world = ClassicGroups()
    (member,) = world.stable(instance_id="one")
    world.join(member, instance_id="one", strategies=("range", "sticky"), metadata=b"other")
    again = world.join(member, instance_id="one", strategies=("sticky",), metadata=b"other")
    world.sync(member, again.answer.generation_id, {member: b""}, instance_id="one", strategy="sticky")
    group = world.loaded().state.groups[world.classic.group_id]
    assert (group.state_name, group.strategy) == (STABLE.value, "sticky")  # type: ignore[attr-defined]
    assert group.members[member].metadata("sticky") == b"other"  # type: ignore[attr-defined]


class Fault(Exception):
    pass


def failing(now_ms: int) -> Result[object]:
    raise Fault


def test_a_timer_that_fails_keeps_no_other_waiting() -> None:
    timers, ran = Timers(), list[str]()
    timers.set("first", 11, failing)  # type: ignore[arg-type]
    timers.set("second", 12, lambda now_ms: ran.append("second") or Result())  # type: ignore[func-returns-value]
    with pytest.raises(Fault) as caught:
        timers.expire(20)
    timers.failed(caught.value, 20)
    timers.expire(20)
    assert ran == ["second"]


def test_a_timer_that_fails_comes_again_later_and_later() -> None:
    timers, waits = Timers(), list[int]()
    timers.set("faulty", 10, failing)  # type: ignore[arg-type]
    now_ms = 10
    for _ in range(9):
        with pytest.raises(Fault) as caught:
            timers.expire(now_ms)
        timers.failed(caught.value, now_ms)
        assert not timers.expire(now_ms).records
        due_ms = timers.next_deadline_ms()
        assert due_ms is not None
        waits.append(due_ms - now_ms)
        now_ms = due_ms
    assert waits == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, MAX_RETRY_MS]


def test_a_timer_whose_records_cannot_be_written_comes_again_after_a_while() -> None:
    timers = Timers()
    timers.set("refused", 10, lambda now_ms: Result(("record",)))  # type: ignore[arg-type]
    for now_ms in (10, 10 + EXPIRY_RETRY_MS, 10 + 2 * EXPIRY_RETRY_MS):
        assert timers.expire(now_ms).records
        timers.failed(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), now_ms)
        assert not timers.expire(now_ms).records
    assert timers.next_deadline_ms() == 10 + 3 * EXPIRY_RETRY_MS
    ran = timers.expire(10 + 3 * EXPIRY_RETRY_MS)
    assert ran.records
    ran.effects[0]()
    assert not timers.expire(10 + 9 * EXPIRY_RETRY_MS).records


def test_a_timer_that_sets_itself_for_now_does_not_hold_the_clock() -> None:
    timers, count = Timers(), list[int]()

    def again(now_ms: int) -> Result[object]:
        count.append(now_ms)
        return Result((), (), (lambda: timers.set("again", now_ms, again),))  # type: ignore[arg-type]

    timers.set("again", 10, again)  # type: ignore[arg-type]
    while timers.next_deadline_ms() == 10:
        for effect in timers.expire(10).effects:
            effect()
    assert count == [10] * MAX_RUNS
    assert timers.next_deadline_ms() == 10 + EXPIRY_RETRY_MS
