"""Waits for conditions in other processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from odradek.testing.errors import WaitTimeout

__tracebackhide__ = True

T = TypeVar("T")

PAUSE_S: Final = 0.01
"""Pause between checks. A check takes a millisecond, so the broker has most of its time for clients."""

WAIT_S: Final = 30.0
"""Default timeout, long enough for a machine that is busy with other tests."""


def wait_until(look: Callable[[], T | None], timeout_s: float, explain: Callable[[], str]) -> T:
    """Calls `look` until its result is not None, and returns it. Raises WaitTimeout with the text of `explain`."""
    deadline = time.monotonic() + timeout_s
    while (result := look()) is None:
        if time.monotonic() >= deadline:
            raise WaitTimeout(f"waited for {timeout_s:g} s: {explain()}")
        time.sleep(PAUSE_S)
    return result
