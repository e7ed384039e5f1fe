"""Valid requests with many entries in one array.

They are made from the schemas, so that every served API is covered: each array of a request, in each version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple

from protocol.schema import Field, Kind, fields_of
from tests.broker.extremes import INDEXES, plausible, value_of

IDENTITIES = frozenset(
    {*INDEXES, "broker_id", "broker_ids", "partitions", "partition_indexes", "producer_id", "feature_level"}
)
"""Numbers that identify the entries of an array."""

Entry = Callable[[int], Any]


class Many(NamedTuple):
    """A request in one version, with many entries in one array."""

    request: type
    version: int
    path: tuple[str, ...]
    """The names of the fields that lead to the array."""
    is_distinct: bool
    """True if each entry has its own name, id or number; otherwise all entries are the same."""

    def __str__(self) -> str:
        kind = "distinct" if self.is_distinct else "same"
        return f"{self.request.__name__} v{self.version} {'.'.join(self.path)} {kind}"

    def build(self, count: int, topic_id: bytes) -> Any:
        """Returns the request with this number of entries, about a topic with this id."""
        request = plausible(self.request, self.version, topic_id, frozenset(self.path))
        *way, last = self.path
        owner = request
        for step in way:
            owner = getattr(owner, step)
            owner = owner[0] if isinstance(owner, list) else owner
        field = next(field for field in fields_of(type(owner)) if field.name == last)
        assert field.kind.items is not None
        entry = value_of(field, field.kind.items, self.version, topic_id, frozenset())
        distinct = self.is_distinct
        setattr(owner, last, [numbered(entry, field, field.kind.items, i) if distinct else entry for i in range(count)])
        return request


def requests_of_many(request: type, version: int) -> Iterator[Many]:
    """Yields the requests of this class and version: one or two for each array."""
    for path in arrays(request, version):
        yield Many(request, version, path, is_distinct=True)
        yield Many(request, version, path, is_distinct=False)


def arrays(cls: type, version: int, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields the paths of the arrays of a message, nested arrays too."""
    for field in fields_of(cls):
        if version not in field.wire.versions:
            continue
        kind, path = field.kind, (*above, field.name)
        if kind.name == "array":
            assert kind.items is not None
            yield path
            kind = kind.items
        if kind.struct is not None:
            yield from arrays(kind.struct, version, path)


def numbered(entry: Any, field: Field, kind: Kind, number: int) -> Any:
    """Returns an entry whose names, ids and indexes contain this number."""
    if kind.struct is not None:
        copied = copy(entry)  # the lists in it are shared, and stay as they are
        for inner in fields_of(kind.struct):
            value = getattr(copied, inner.name)
            if value is not None and inner.kind.name != "array" and inner.kind.struct is None:
                setattr(copied, inner.name, numbered(value, inner, inner.kind, number))
        return copied
    if kind.name == "string":
        return entry if entry is None else f"{entry}-{number}"
    if kind.name == "uuid":
        return (number + 1).to_bytes(16, "big")
    return number if field.name in IDENTITIES else entry
