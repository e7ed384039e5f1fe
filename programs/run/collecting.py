"""Garbage collection of a node's process: no collection traverses the long-lived objects.

A full collection traverses every object it knows, while no thread runs: 0.1 s for a million. Images, logs and groups
have millions. So the objects of the start, and later those that survive a full collection, are frozen: a full
collection traverses only what came since the one before. Frozen objects are freed as all others when nothing refers to
them; only cycles among them are not. Requests and connections leave none (tests/broker/test_cycles.py).
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Final

OLDEST: Final = 2
"""The generation that a full collection collects."""

THRESHOLDS: Final = (10_000, 5, 5)
"""New objects until the youngest generation is collected, and collections of a generation until the next older one is.
A full collection comes after 250,000 new objects at the earliest, and takes some 25 ms for them. A turn of the event
loop with a hundred requests makes some thousands of objects: with Python's 700, collections would traverse the same
requests repeatedly and move them to an older generation."""


def begin() -> None:
    """Freezes the objects of the start, and enables collections."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    if _freeze_survivors not in gc.callbacks:
        gc.callbacks.append(_freeze_survivors)
    gc.enable()


def _freeze_survivors(phase: str, collected: Mapping[str, int]) -> None:
    if phase == "stop" and collected["generation"] == OLDEST:
        gc.freeze()
