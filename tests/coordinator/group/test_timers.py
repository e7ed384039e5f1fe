"""Tests timers: set, moved, cancelled, and run in order."""

from __future__ import annotations

from random import Random
from weakref import WeakSet

import pytest

from coordinator.engine.result import Result
from coordinator.group.records import GroupRecord, GroupResult, offset_gone
from coordinator.group.timers import Action, Timers


class Ran:
    """Actions that record when they ran."""

    def __init__(self) -> None:
        self.names: list[tuple[str, int]] = []

    def action(self, name: str, *, writes: bool = False) -> Action:
        def act(now_ms: int) -> GroupResult:
            self.names.append((name, now_ms))
            return Result([offset_gone(name, "topic", 0)] if writes else ())

        return act


def ran_at(timers: Timers, now_ms: int) -> None:
    """Runs all due timers, one by one, as the engine does."""
    while (due_ms := timers.next_deadline_ms()) is not None and due_ms <= now_ms:
        for effect in timers.expire(now_ms).effects:
            effect()


def test_what_is_due_runs_in_the_order_of_deadlines() -> None:
    timers, ran = Timers(), Ran()
    timers.set("b", 20, ran.action("b"))
    timers.set("a", 10, ran.action("a"))
    timers.set("c", 30, ran.action("c"))
    assert timers.next_deadline_ms() == 10
    ran_at(timers, 25)
    assert ran.names == [("a", 25), ("b", 25)]
    assert timers.next_deadline_ms() == 30
    assert "a" not in timers


def test_a_deadline_that_was_moved_on_is_not_due_at_its_old_time() -> None:
    timers, ran = Timers(), Ran()
    timers.set("session", 10, ran.action("session"))
    assert timers.postpone("session", 50)
    ran_at(timers, 10)
    assert ran.names == []
    assert timers.next_deadline_ms() == 50
    ran_at(timers, 50)
    assert ran.names == [("session", 50)]


def test_a_deadline_that_was_brought_forward_is_due_earlier_and_only_once() -> None:
    timers, ran = Timers(), Ran()
    timers.set("session", 50, ran.action("session"))
    timers.set("session", 10, ran.action("session"))
    ran_at(timers, 10)
    ran_at(timers, 50)
    assert ran.names == [("session", 10)]


def test_what_was_cancelled_never_runs_and_cannot_be_postponed() -> None:
    timers, ran = Timers(), Ran()
    timers.set("session", 10, ran.action("session"))
    timers.cancel("session")
    assert not timers.postpone("session", 50)
    ran_at(timers, 100)
    assert ran.names == []
    assert timers.next_deadline_ms() is None


def test_one_that_is_set_again_after_it_was_cancelled_runs() -> None:
    timers, ran = Timers(), Ran()
    timers.set("session", 10, ran.action("first"))
    timers.cancel("session")
    timers.set("session", 30, ran.action("second"))
    ran_at(timers, 20)
    ran_at(timers, 30)
    assert ran.names == [("second", 30)]


def test_one_timer_runs_at_a_time() -> None:
    timers, ran = Timers(), Ran()
    timers.set("a", 10, ran.action("a", writes=True))
    timers.set("b", 10, ran.action("b", writes=True))
    first = timers.expire(10)
    assert [record.key.group for record in first.records if isinstance(record, GroupRecord)] == ["a"]  # type: ignore[attr-defined]
    assert ran.names == [("a", 10)]
    first.effects[0]()
    assert timers.next_deadline_ms() == 10
    ran_at(timers, 10)
    assert ran.names == [("a", 10), ("b", 10)]


def test_a_timer_stays_until_its_records_are_applied() -> None:
    timers, ran = Timers(), Ran()
    timers.set("a", 10, ran.action("a", writes=True))
    assert timers.expire(10).records == timers.expire(10).records
    assert "a" in timers
    assert timers.next_deadline_ms() == 10


class Key:
    """A key that shows by a weak reference whether anything keeps it."""


@pytest.mark.parametrize("end", ["cancelled", "run"])
def test_members_that_come_and_go_leave_little_behind(end: str) -> None:
    timers, ran = Timers(), Ran()
    kept: WeakSet[Key] = WeakSet()
    for now_ms in range(0, 100_000, 10):
        key = Key()
        kept.add(key)
        timers.set(key, now_ms + 300_000, ran.action("join"))
        timers.set(key, now_ms + 5, ran.action("session"))
        if end == "cancelled":
            timers.cancel(key)
        ran_at(timers, now_ms + 5)
    assert not timers
    assert len(ran.names) == (0 if end == "cancelled" else 10_000)
    assert len(kept) <= 100


def test_a_thousand_postponements_leave_one_entry_in_the_heap() -> None:
    timers, ran = Timers(), Ran()
    for time_ms in range(1000):
        timers.set("session", 10_000 + time_ms, ran.action("session"))
    assert len(timers._heap) == 1


@pytest.mark.parametrize("seed", range(5))
def test_each_timer_runs_at_its_deadline_whatever_was_set_postponed_and_cancelled(seed: int) -> None:
    dice, timers, ran = Random(seed), Timers(), Ran()
    deadlines: dict[str, int] = {}
    for now_ms in range(3_000):
        due = sorted((deadline_ms, name) for name, deadline_ms in deadlines.items() if deadline_ms <= now_ms)
        ran.names.clear()
        ran_at(timers, now_ms)
        assert sorted(ran.names) == sorted((name, now_ms) for _, name in due)
        for _, name in due:
            del deadlines[name]
        for _ in range(3):
            name = str(dice.randrange(dice.choice([10, 2_000])))
            deadline_ms = now_ms + dice.choice([1, 10, 100, 1_000])
            step = dice.randrange(4)
            if step == 0:
                timers.cancel(name)
                deadlines.pop(name, None)
            elif step == 1:
                assert timers.postpone(name, deadline_ms) == (name in deadlines)
                if name in deadlines:
                    deadlines[name] = deadline_ms
            else:
                timers.set(name, deadline_ms, ran.action(name))
                deadlines[name] = deadline_ms
        assert {name: timers.deadline_ms(name) for name in timers} == deadlines
        following = timers.next_deadline_ms()
        assert not deadlines or (following is not None and following <= min(deadlines.values()))
