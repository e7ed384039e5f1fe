"""Draws requests from a seed: well-formed, but otherwise invalid in any way.

Fields are filled by their schema: extremes of each type, nulls, duplicate entries. A field whose name is in the pools
gets meaningful values: topics, members, and present, former or invented epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Protocol, TypeVar

from protocol.schema import Field, Kind, fields_of

T = TypeVar("T")

EXTREMES: Mapping[str, Sequence[Any]] = {
    "int8": (0, 1, -1, 127, -128),
    "int16": (0, 1, -1, 32767, -32768),
    "uint16": (0, 1, 65535),
    "int32": (0, 1, -1, 2**31 - 1, -(2**31)),
    "uint32": (0, 1, 2**32 - 1),
    "int64": (0, 1, -1, 2**63 - 1, -(2**63)),
    "float64": (0.0, -1.0),
    "bool": (False, True),
    "string": ("", "a", "\x00", "é", "x" * 300),
    "bytes": (b"", b"\x00", b"\xff" * 8, bytes(40)),
    "records": (b"",),
    "uuid": (bytes(16), b"\xff" * 16, bytes(15) + b"\x01"),
}

NULLS = 0.15
TWICE = 0.2
FROM_POOL = 0.9


class AnyRequest:
    """Makes requests; its caller puts values from answers into the pools."""

    def __init__(self, seed: int, pools: Mapping[str, Sequence[Any]]) -> None:
        self.random = Random(seed)
        self.pools: dict[str, list[Any]] = {name: list(values) for name, values in pools.items()}

    def learn(self, pool: str, value: Any) -> None:
        """Adds the value to a pool for later requests; the pool doesn't grow without limit."""
        values = self.pools[pool]
        if value not in values:
            values.append(value)
            if len(values) > 24:
                del values[self.random.randrange(8, len(values))]

    def make(self, request: type[T], **fixed: Any) -> T:
        """Returns a request of the class, with the given `fixed` fields."""
        values = {field.name: self._field(field) for field in fields_of(request) if field.name not in fixed}
        return request(**values, **fixed)

    def _field(self, field: Field) -> Any:
        nullable = field.wire.nullable
        if nullable.first <= nullable.last and self.random.random() < NULLS:
            return None
        return self._value(field.name, field.kind)

    def _value(self, name: str, kind: Kind) -> Any:
        if kind.name == "array":
            assert kind.items is not None
            items = [self._value(name, kind.items) for _ in range(self.random.choice((0, 1, 1, 2, 3)))]
            if items and self.random.random() < TWICE:
                items.append(self.random.choice(items))
            return items
        if kind.struct is not None:
            return self.make(kind.struct)
        pool = self.pools.get(name)
        if pool and self.random.random() < FROM_POOL:
            return self.random.choice(pool)
        return self.random.choice(EXTREMES[kind.name])


class Hostile(Protocol):
    """A client that sends random requests from its seed."""

    requested: str
    accepted: set[str]
    """The decisions that were accepted, by their names in `decisions`."""

    def step(self) -> None: ...


def answered_or_refused(hostile: Hostile, seed: int, steps: int) -> None:
    """Checks that a request raises nothing except the error that it gets."""
    for step in range(steps):
        try:
            hostile.step()
        except Exception as error:
            raise AssertionError(f"seed {seed}, step {step}: {hostile.requested}") from error


def each_accepted(make: Callable[[int], Hostile], names: Iterable[str], seeds: int, steps: int) -> None:
    """Asserts that each of these decisions was accepted at least once; every decision is made twice."""
    never = all_names = frozenset(names)
    for seed in range(seeds):
        hostile = make(seed)
        answered_or_refused(hostile, seed, steps)
        never -= hostile.accepted
        assert hostile.accepted <= all_names
        if not never:
            return
    raise AssertionError(f"never accepted: {sorted(never)}")
