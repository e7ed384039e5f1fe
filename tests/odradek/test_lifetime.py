"""Tests that a broker ends with its `async with` block, also if the block is cancelled before it has begun."""

from __future__ import annotations

import asyncio
import threading

import pytest

from odradek.testing.lifetime import Lifetime
from odradek.testing.process import START_S

LONG_S = 60


class Slow(Lifetime[str]):
    """A broker that serves once the test allows it."""

    def __init__(self) -> None:
        self.begun, self.let = threading.Event(), threading.Event()
        self.serves = False

    @property
    def aio(self) -> str:
        return "coroutines"

    def start(self, *, timeout_s: float = START_S) -> None:
        self.begun.set()
        assert self.let.wait(LONG_S)
        self.serves = True

    def close(self) -> None:
        self.serves = False


async def test_a_start_that_is_given_up_leaves_nothing_running() -> None:
    slow = Slow()
    entering = asyncio.create_task(slow.__aenter__())
    await asyncio.to_thread(slow.begun.wait, LONG_S)
    entering.cancel()
    await asyncio.sleep(0)  # now it waits for the thread
    slow.let.set()
    with pytest.raises(asyncio.CancelledError):
        await entering
    await asyncio.get_running_loop().shutdown_default_executor()  # the thread has come to its end
    assert not slow.serves


async def test_one_that_is_not_lives_as_long_as_its_block() -> None:
    slow = Slow()
    slow.let.set()
    async with slow as view:
        assert (view, slow.serves) == ("coroutines", True)
    assert not slow.serves
