"""Makes each decision twice: it changes nothing, and has the same result again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from enum import Enum
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final, TypeVar

from coordinator.engine.result import Result, Ticket
from coordinator.group.state import GroupEnvironment, GroupState
from coordinator.group.subscription_metadata import TopicWatch
from coordinator.group.timers import Timers
from coordinator.share_partition.run import Run
from coordinator.share_partition.share_partition import SharePartition
from protocol.errors import KafkaError

R = TypeVar("R")

PLAIN: Final = (Enum, str, bytes, bytearray, int, float, type(None), type)
SURROUNDINGS: Final = (GroupEnvironment, TopicWatch, Ticket)
"""Types that are no part of a machine's state: only their identity is compared."""


def picture(thing: object, whole: object = None) -> Any:
    """Returns an object with everything in it as plain values, for a later comparison; `whole` is the machine itself,
    which its callbacks refer to."""
    if isinstance(thing, PLAIN):
        return thing
    if thing is whole or isinstance(thing, SURROUNDINGS):
        return id(thing)
    if isinstance(thing, Timers):
        return _timers(thing)
    if isinstance(thing, SharePartition):
        return _share_partition(thing)
    if isinstance(thing, Run):
        return _run(thing)
    if isinstance(thing, FunctionType | MethodType):
        return thing.__qualname__, _bound(thing)
    if isinstance(thing, partial):
        arguments = [picture(item, whole) if not isinstance(item, GroupState) else id(item) for item in thing.args]
        return picture(thing.func, whole), arguments, picture(thing.keywords, whole)
    if isinstance(thing, KafkaError):
        return thing.code, thing.message
    if isinstance(thing, Mapping):
        return [(picture(key, whole), picture(value, whole)) for key, value in thing.items()]
    if isinstance(thing, Set):
        return sorted(repr(picture(item, whole)) for item in thing)
    if isinstance(thing, Sequence):
        return [picture(item, whole) for item in thing]
    return type(thing).__name__, [(name, picture(value, whole)) for name, value in _attributes(thing)]


def _timers(timers: Timers) -> Any:
    """Returns the deadlines; the heap may be reordered at any time."""
    return [(key, timer.deadline_ms, timer.failures) for key in timers for timer in (timers._timers[key],)]


def _share_partition(partition: SharePartition) -> Any:
    """Returns the records in flight. The index of their runs is derived from them, and its heaps may be reordered."""
    runs = [(batch.first, batch.last, batch.is_tracked, list(map(_run, batch.runs))) for batch in partition.cache]
    offsets = (partition.start_offset, partition.end_offset, partition.delivery_complete_count, partition.gap)
    due = (partition.next_deadline_ms(), partition.cache.index.available.least(), partition.is_active)
    return runs, offsets, due, [id(record) for record in partition.reserved], sorted(partition.rejected)


def _run(run: Run) -> Any:
    return run.first, run.last, run.state, run.delivery_count, run.member_id, run.lock_until_ms, id(run.change)


def _bound(thing: object) -> int:
    return id(getattr(thing, "__self__", None))


def _attributes(thing: object) -> list[tuple[str, object]]:
    names = list(getattr(thing, "__dict__", ()))
    for kind in type(thing).__mro__:
        slots = getattr(kind, "__slots__", ())
        names += (slots,) if isinstance(slots, str) else slots
    return [(name, getattr(thing, name)) for name in names if hasattr(thing, name)]


def decided(machine: object, decide: Callable[[], Result[R]], again: Callable[[], None] = lambda: None) -> Result[R]:
    """Returns a decision's result, made twice; `again` resets random numbers in between. Raises the KafkaError that is
    its answer."""
    before = picture(machine)
    first, result = _made(machine, decide)
    assert picture(machine) == before, "the decision has changed the machine"
    again()
    second, _ = _made(machine, decide)
    assert second == first, "the decision has another result when it is made again"
    assert picture(machine) == before, "the second decision has changed the machine"
    if isinstance(result, KafkaError):
        raise result
    return result


def _made(machine: object, decide: Callable[[], Result[R]]) -> tuple[Any, Result[R] | KafkaError]:
    try:
        result = decide()
    except KafkaError as error:
        return picture(error), error
    parts = (result.records, result.replies, result.effects)
    return [picture(part, machine) for part in parts], result
