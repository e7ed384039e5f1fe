"""Settings of the interpreter for a node: clients wait neither for a garbage collection nor for a thread.

A full collection traverses every object it knows, while no thread runs: 0.1 to 0.3 s for a million. Images, logs and
groups have millions. So the objects of the start, and later those that survive a full collection, are frozen: a full
collection traverses only what came since the one before. Frozen objects are freed as all others when nothing refers to
them; only cycles among them are not. Requests and connections leave none (tests/broker/test_cycles.py and
test_connection_cycles.py). Share partitions leave small ones when they are unloaded: once an hour all objects are
traversed.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from typing import Final

OLDEST: Final = 2
"""The generation that a full collection collects."""

THRESHOLDS: Final = (10_000, 3, 2)
"""New objects until the youngest generation is collected, and collections of a generation until the next older one is.
A full collection comes after 120,000 new objects at the earliest, and takes 10 to 35 ms for them. A turn of the event
loop with a hundred requests makes some thousands of objects: with Python's 700, collections would traverse the same
requests repeatedly and move them to an older generation."""

SWITCH_INTERVAL_S: Final = 0.001
"""Time after which a thread that computes gives the interpreter's lock to another, such as the event loop, which needs
it several times in a turn. With Python's 5 ms, clients waited twice as long beside three large requests."""


def begin() -> None:
    """Applies the settings, and freezes the objects of the start."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    if _freeze_survivors not in gc.callbacks:
        gc.callbacks.append(_freeze_survivors)
    gc.enable()


def collect_frozen() -> None:
    """Collects cycles among all objects, the frozen ones too. Clients wait until it returns."""
    gc.unfreeze()
    gc.collect()


def _freeze_survivors(phase: str, collected: Mapping[str, int]) -> None:
    if phase == "stop" and collected["generation"] == OLDEST:
        gc.freeze()
