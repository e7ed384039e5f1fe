"""Tests coroutines that run at once up to their first wait."""

from __future__ import annotations

import asyncio

import pytest

from broker.request.eager import Waiting, begin


async def answer(value: int) -> int:
    return value


async def fail() -> int:
    raise ValueError("on the spot")


async def wait_for(future: asyncio.Future[int]) -> int:
    first = await future
    await asyncio.sleep(0)
    return first + 1


async def go_on(waiting: int | Waiting[int]) -> int:
    assert isinstance(waiting, Waiting)
    return await waiting


def test_what_need_not_wait_is_there_at_once_without_an_event_loop() -> None:
    assert begin(answer(7)) == 7


def test_what_it_raises_at_once_is_raised_on_the_spot() -> None:
    with pytest.raises(ValueError, match="on the spot"):
        begin(fail())


async def test_what_waits_goes_on_in_a_task() -> None:
    future = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(go_on(begin(wait_for(future))))
    await asyncio.sleep(0)
    assert not task.done()
    future.set_result(1)
    assert await task == 2


async def test_a_future_that_is_done_before_the_task_begins_is_no_loss() -> None:
    future = asyncio.get_running_loop().create_future()
    waiting = begin(wait_for(future))
    future.set_result(1)
    assert await go_on(waiting) == 2


async def test_what_the_future_raises_is_the_coroutines_to_see() -> None:
    seen: list[str] = []

    async def watch(future: asyncio.Future[int]) -> int:
        try:
            return await future
        except OSError as error:
            seen.append(str(error))
            return -1

    future = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(go_on(begin(watch(future))))
    future.set_exception(OSError("gone"))
    assert await task == -1
    assert seen == ["gone"]


async def test_a_cancellation_reaches_the_coroutine_and_what_it_waits_for() -> None:
    ended: list[str] = []

    async def watch(future: asyncio.Future[int]) -> int:
        try:
            return await future
        finally:
            ended.append("cleaned up")

    future = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(go_on(begin(watch(future))))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cleaned up"]
    assert future.cancelled()
