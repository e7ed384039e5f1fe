"""Makes a request that two brokers answer differently as small as possible, with the same difference."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.fuzz.drawing import Draw
from tests.fuzz.limits import tame
from tests.fuzz.mutations import places
from tests.fuzz.twins import READS, Answers, Twins

Shows = Callable[[Answers], bool]


def reduced(twins: Twins, cls: type, version: int, seed: str, shows: Shows, fresh: Callable[[], str]) -> Any:
    """Returns the smallest request that still shows the difference in a new world of Odradek; None if it depends on
    earlier requests. `fresh` is the prefix of an unused world."""
    steps: list[tuple[int, int]] = []
    last = tried(twins, cls, version, seed, steps, fresh())
    if last is None or not shows(last):
        return None
    position = 0
    while position < len(lists(last.request, version)):
        size = len(lists(last.request, version)[position])
        for item in range(size):
            answers = tried(twins, cls, version, seed, [*steps, (position, item)], fresh() if changes(cls) else "")
            if answers is not None and shows(answers):
                steps.append((position, item))
                last = answers
                break
        else:
            position += 1
    return last.request


def tried(
    twins: Twins, cls: type, version: int, seed: str, steps: list[tuple[int, int]], prefix: str
) -> Answers | None:
    """Sends the request without the parts that the steps leave out, in the world of the prefix, or in the present
    one."""
    if prefix:
        twins.begin(prefix)
    requests = [Draw(random.Random(seed), vocabulary).request(cls, version) for vocabulary in twins.vocabularies]
    for request, vocabulary in zip(requests, twins.vocabularies, strict=True):
        if not tame(request, version, vocabulary):
            return None
        for position, item in steps:
            del lists(request, version)[position][item]
    return twins.put(requests, version)


def lists(request: Any, version: int) -> list[list[Any]]:
    """Returns the lists of a request, outer lists first."""
    values = (getattr(owner, field.name) for owner, field in places(request, version))
    return [value for value in values if isinstance(value, list)]


def changes(cls: type) -> bool:
    return cls.__name__ not in READS
