"""Tests the settings of the interpreter for a node."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from programs.run import interpreter


class Thing:
    """An object that may refer to itself."""

    def __init__(self, *, is_cyclic: bool) -> None:
        self.own = self if is_cyclic else None


@pytest.fixture(autouse=True)
def begun() -> Iterator[None]:
    thresholds, callbacks, interval_s = gc.get_threshold(), list(gc.callbacks), sys.getswitchinterval()
    interpreter.begin()
    try:
        yield
    finally:
        gc.callbacks[:] = callbacks
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval_s)
        gc.unfreeze()


def test_a_full_collection_does_not_traverse_the_survivors_of_another() -> None:
    things = [Thing(is_cyclic=False) for _ in range(10_000)]
    assert sum(isinstance(known, Thing) for known in gc.get_objects()) == len(things)
    gc.collect()
    assert not any(isinstance(known, Thing) for known in gc.get_objects())


def test_younger_collections_freeze_nothing() -> None:
    thing = Thing(is_cyclic=False)
    gc.collect(0)
    gc.collect(1)
    assert any(known is thing for known in gc.get_objects())


def test_survivors_are_freed_when_nothing_refers_to_them() -> None:
    thing = Thing(is_cyclic=False)
    gc.collect()
    reference = weakref.ref(thing)
    del thing
    assert reference() is None


def test_a_new_cycle_is_collected() -> None:
    gc.collect()
    reference = weakref.ref(Thing(is_cyclic=True))
    gc.collect()
    assert reference() is None


def test_a_cycle_of_survivors_is_found_when_all_are_traversed() -> None:
    thing = Thing(is_cyclic=True)
    gc.collect()
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    assert reference() is not None
    interpreter.collect_frozen()
    assert reference() is None
    assert gc.get_freeze_count()


def test_beginning_twice_changes_nothing() -> None:
    callbacks = list(gc.callbacks)
    interpreter.begin()
    assert gc.callbacks == callbacks


def test_threads_give_way_sooner_than_by_default() -> None:
    assert sys.getswitchinterval() == pytest.approx(interpreter.SWITCH_INTERVAL_S)
