"""Generates requests with many entries, of every API: one list of a request is repeated."""

from __future__ import annotations

import random
from copy import copy
from typing import Any, Final

from broker.handlers import APIS
from protocol.schema import Field
from protocol.types import NO_UUID
from tests.broker.inprocess import request_frame
from tests.broker.many import Many, numbered, requests_of_many
from tests.fuzz.mutations import places

FEWEST, MOST = 20_000, 200_000
MOST_BYTES: Final = 16 << 20
"""Maximum size of a generated request: the broker rejects a larger request unread, unless it is a Produce."""

LONGEST_CALLBACK_S: Final = 0.2
"""Processor time for which a callback may hold the event loop."""

KEPT: Final = 24
"""Number of frames that are sent repeatedly: building a frame takes longer than rejecting it."""


def many_entries(rng: random.Random) -> int:
    """Returns a number of entries; large ones are rare."""
    return int(FEWEST * (MOST / FEWEST) ** rng.random())


class LargeFrames:
    """Requests of any API and version as clients send them, except that one list is long."""

    def __init__(self) -> None:
        self._requests: list[Many] = [
            many
            for api in APIS
            for version in dict.fromkeys(api.versions)
            for many in requests_of_many(api.request, version)
        ]
        self._kept: list[bytes] = []

    def draw(self, rng: random.Random) -> bytes:
        """Returns a frame, with its size in front."""
        if len(self._kept) == KEPT and rng.random() < 0.9:
            return rng.choice(self._kept)
        many = rng.choice(self._requests)
        made = request_frame(many.build(many_entries(rng), NO_UUID), many.version)
        self._kept = [*self._kept[-KEPT + 1 :], made]
        return made


def grow(request: Any, version: int, rng: random.Random, size_bytes: int) -> bool:
    """Repeats the entries of one list until there are many, unchanged or with new names and numbers. Returns False for
    a request without a list. `size_bytes` is the size of its frame."""
    lists = [
        (owner, field) for owner, field in places(request, version) if field.kind.items and getattr(owner, field.name)
    ]
    if not lists:
        return False
    owner, field = rng.choice(lists)
    entries = getattr(owner, field.name)
    count = min(many_entries(rng), MOST_BYTES * len(entries) // size_bytes)
    make = rng.choice((same, of_its_own))
    setattr(owner, field.name, [make(entries[number % len(entries)], field, number) for number in range(count)])
    return True


def same(entry: Any, field: Field, number: int) -> Any:
    return entry


def of_its_own(entry: Any, field: Field, number: int) -> Any:
    assert field.kind.items is not None
    return numbered(copy(entry), field, field.kind.items, number)
