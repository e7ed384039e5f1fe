"""The assignors of the server, by the names that `group.consumer.assignors` and members give them."""

from __future__ import annotations

from functools import cache
from typing import Final

from coordinator.group.assignment import Assignor
from coordinator.group.assignors.by_range import assign_ranges
from coordinator.group.assignors.uniform import assign_uniformly

ASSIGNORS: Final[dict[str, Assignor]] = {
    "uniform": assign_uniformly,
    "range": assign_ranges,
}

KAFKAS_CLASSES: Final = "org.apache.kafka.coordinator.group.assignor."
"""An operator may also name them by their classes in Apache Kafka, whose own names are these with "Assignor" behind."""


@cache
def configured(names: tuple[str, ...]) -> tuple[str, ...]:
    """The assignors of `group.consumer.assignors`, the default first; all, if it names none that is here."""
    short = (name.removeprefix(KAFKAS_CLASSES).removesuffix("Assignor").lower() for name in names)
    return tuple(name for name in short if name in ASSIGNORS) or tuple(ASSIGNORS)
