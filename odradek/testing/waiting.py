"""Waits for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from odradek.testing.errors import WaitTimeout

T = TypeVar("T")

PAUSE_S: Final = 0.01
"""A question to the broker takes a millisecond: it has most of its time for its clients."""

WAIT_S: Final = 30.0
"""Long enough for a machine that is busy with other tests; who waits in vain does so once."""


def wait_until(look: Callable[[], T | None], timeout_s: float, explain: Callable[[], str]) -> T:
    """Returns the first that `look` returns which is not None. Raises WaitTimeout with what `explain` says."""
    deadline = time.monotonic() + timeout_s
    while (result := look()) is None:
        if time.monotonic() >= deadline:
            raise WaitTimeout(f"waited for {timeout_s:g} s: {explain()}")
        time.sleep(PAUSE_S)
    return result
