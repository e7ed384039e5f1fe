"""Decides when a broker is warm: its cost per unit of work has stopped falling. Pure.

A JVM compiles what runs often, for many rounds. While a peer's cost still falls, its figures depend on how long it has
run.
"""

from __future__ import annotations

from collections.abc import Sequence

ROUNDS = 3
"""Number of consecutive rounds that must have similar costs; two may be similar by chance."""

SPREAD = 0.05
"""Costs are similar if the largest exceeds the smallest by at most this share."""

MOST_ROUNDS = 20
"""Maximum number of warm-up rounds. A peer whose cost still falls afterwards is measured nevertheless, and marked as
not stable.
"""


def is_settled(costs: Sequence[float]) -> bool:
    """True if the latest ROUNDS costs are within SPREAD of each other."""
    latest = costs[-ROUNDS:]
    return len(latest) == ROUNDS and max(latest) <= (1 + SPREAD) * min(latest)


def needs_more(costs: Sequence[float]) -> bool:
    """True if another warm-up round is needed."""
    return not is_settled(costs) and len(costs) < MOST_ROUNDS
