"""The server's assignors, by the names in `group.consumer.assignors` and in members' requests."""

from __future__ import annotations

from functools import cache
from typing import Final

from coordinator.group.assignment import Assignor
from coordinator.group.assignors.by_range import assign_ranges
from coordinator.group.assignors.uniform import assign_uniformly

ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}

KAFKAS_CLASSES: Final = "org.apache.kafka.coordinator.group.assignor."
"""Package of Apache Kafka's assignor classes. An operator may also configure a class name, such as UniformAssignor for
uniform."""


@cache
def configured(names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the assignors of `group.consumer.assignors`, the default first; all assignors if it names none of
    them."""
    short = (name.removeprefix(KAFKAS_CLASSES).removesuffix("Assignor").lower() for name in names)
    return tuple(name for name in short if name in ASSIGNORS) or tuple(ASSIGNORS)
