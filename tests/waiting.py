"""Waits by polling for events without a notification: in a thread, in another process, or in a broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

WITHIN_S = 60
"""A test fails if it waits for this long; nothing waits for this time to pass."""

MANY_TURNS = 1_000
"""Turns of the event loop after which another thread or process is waited for."""


async def until(is_so: Callable[[], object]) -> None:
    """Returns once a condition holds; meanwhile the event loop and threads continue."""
    turns = 0
    async with asyncio.timeout(WITHIN_S):
        while not is_so():
            turns += 1
            await asyncio.sleep(0 if turns < MANY_TURNS else 0.001)


def wait_until(
    is_so: Callable[[], object],
    what: Callable[[], object] = lambda: "it has not happened",
    *,
    within_s: float = WITHIN_S,
    pause_s: float = 0.02,
) -> None:
    """Returns once a condition holds; meanwhile other processes continue. The error after the timeout contains
    `what`."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, what()
        time.sleep(pause_s)


def eventually(look: Callable[[], object], expected: object, within_s: float = 3 * WITHIN_S) -> None:
    """Returns once a query of other processes, such as the brokers of a cluster, has the expected result."""
    wait_until(lambda: look() == expected, lambda: f"{look()!s:.1000} is not {expected!s:.1000}", within_s=within_s)
