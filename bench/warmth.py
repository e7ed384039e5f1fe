"""When a broker is warm: its cost per unit of work has stopped falling. Pure.

A JVM compiles what runs often, and goes on doing so for many rounds; a figure of a peer that is still getting cheaper
says how long it has run, not what it is.
"""

from __future__ import annotations

from collections.abc import Sequence

ROUNDS = 3
"""So many rounds in a row must cost alike: two may by chance."""

SPREAD = 0.05
"""Alike means that the dearest of them costs at most so much more than the cheapest."""

MOST_ROUNDS = 20
"""A cost that never comes to rest is measured all the same after these, and called unsettled."""


def is_settled(costs: Sequence[float]) -> bool:
    """True when the latest ROUNDS costs are within SPREAD of each other."""
    latest = costs[-ROUNDS:]
    return len(latest) == ROUNDS and max(latest) <= (1 + SPREAD) * min(latest)


def needs_more(costs: Sequence[float]) -> bool:
    """True when another round of warming up is due."""
    return not is_settled(costs) and len(costs) < MOST_ROUNDS
