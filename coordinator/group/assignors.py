"""The assignors of the server, by the names that `group.consumer.assignors` and members give them."""

from __future__ import annotations

from typing import Final

from coordinator.group.assignment import Assignor
from coordinator.group.assignors_range import assign_ranges
from coordinator.group.assignors_uniform import assign_uniformly

ASSIGNORS: Final[dict[str, Assignor]] = {
    "uniform": assign_uniformly,
    "range": assign_ranges,
}
