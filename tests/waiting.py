"""Waits for what tells nobody that it has happened: a thread, another process, or a broker that is asked again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

WITHIN_S = 60
"""A test fails if it waits for this long; nothing waits for this time to pass."""

MANY_TURNS = 1_000
"""Turns of the event loop after which another thread or process is waited for."""


async def until(is_so: Callable[[], object]) -> None:
    """Returns once a condition holds, while the event loop and threads go on."""
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
    """Returns once a condition holds, while other processes go on; a test that fails says `what`."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, what()
        time.sleep(pause_s)


def eventually(look: Callable[[], object], expected: object, within_s: float = 3 * WITHIN_S) -> None:
    """Returns once a look at other processes, such as the brokers of a cluster, shows what is expected."""
    wait_until(lambda: look() == expected, lambda: f"{look()!s:.1000} is not {expected!s:.1000}", within_s=within_s)
