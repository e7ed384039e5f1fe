"""Tests requests whose handlers wait: they run as in a task, and are cancelled at any time."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest

from broker.request.pending import Answer, Running
from protocol.errors import ProtocolError

BYTES = [b"answer"]


class Handler:
    """A handler that awaits futures one after the other, and notes what it sees."""

    def __init__(self, waits: int) -> None:
        loop = asyncio.get_running_loop()
        self.futures = [loop.create_future() for _ in range(waits)]
        self.cancelled = 0
        self.answers: list[Answer | BaseException] = []
        self.running = Running(self._run())

    async def _run(self) -> Answer:
        try:
            for future in self.futures:
                await future
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return list(BYTES)

    def begin(self) -> None:
        self.running.begin(self.answers.append)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_done_before", [False, True])
async def test_what_needs_no_wait_is_answered_a_turn_later(is_done_before: bool) -> None:
    handler = Handler(1)
    if is_done_before:
        handler.futures[0].set_result(None)
    handler.begin()
    assert not handler.answers, "its connection isn't called back within its own call"
    if not is_done_before:
        handler.futures[0].set_result(None)
    await turns()
    assert handler.answers == [BYTES]


async def test_it_waits_as_often_as_it_likes_without_a_task() -> None:
    handler = Handler(3)
    tasks = len(asyncio.all_tasks())
    handler.begin()
    for future in handler.futures:
        await turns()
        assert (handler.answers, len(asyncio.all_tasks())) == ([], tasks)
        future.set_result(None)
    await turns()
    assert handler.answers == [BYTES]


async def test_two_may_await_the_same_future() -> None:
    handlers = [Handler(1), Handler(2)]
    shared = asyncio.get_running_loop().create_future()
    handlers[0].futures = [shared]
    handlers[1].futures[1] = shared
    for handler in handlers:
        handler.begin()
    handlers[1].futures[0].set_result(None)
    await turns()
    shared.set_result(None)
    await turns()
    assert [handler.answers for handler in handlers] == [[BYTES], [BYTES]]


async def test_a_handler_that_only_gives_up_its_turn_goes_on() -> None:
    async def work() -> Answer:
        await asyncio.sleep(0)
        return list(BYTES)

    answers: list[Answer | BaseException] = []
    Running(work()).begin(answers.append)
    await turns()
    assert answers == [BYTES]


@pytest.mark.parametrize("failing", [0, 1])
async def test_an_error_is_its_answer(failing: int) -> None:
    handler = Handler(2)
    handler.begin()
    for number, future in enumerate(handler.futures):
        await turns()
        if number == failing:
            future.set_exception(ValueError("broken"))
            break
        future.set_result(None)
    await turns()
    (answer,) = handler.answers
    assert isinstance(answer, ValueError)


@pytest.mark.parametrize("wait", [0, 1])
async def test_what_is_cancelled_elsewhere_ends_the_request(wait: int) -> None:
    handler = Handler(2)
    handler.begin()
    for future in handler.futures[:wait]:
        future.set_result(None)
        await turns()
    handler.futures[wait].cancel()
    await turns()
    (answer,) = handler.answers
    assert isinstance(answer, ProtocolError)


def cancel_at_once(handler: Handler, wait: int) -> None:
    handler.running.cancel()


def cancel_when_the_future_is_done(handler: Handler, wait: int) -> None:
    handler.futures[wait].set_result(None)
    handler.running.cancel()


def cancel_when_the_future_has_failed(handler: Handler, wait: int) -> None:
    handler.futures[wait].set_exception(ValueError("unread"))
    handler.running.cancel()


def cancel_in_the_turn_of_its_next_wait(handler: Handler, wait: int) -> None:
    handler.futures[wait].set_result(None)
    asyncio.get_running_loop().call_soon(handler.running.cancel)


CANCELS = [
    cancel_at_once,
    cancel_when_the_future_is_done,
    cancel_when_the_future_has_failed,
    cancel_in_the_turn_of_its_next_wait,
]


@pytest.mark.parametrize("cancel", CANCELS)
@pytest.mark.parametrize("wait", [0, 1])
async def test_a_cancelled_request_has_no_answer_and_its_handler_learns_it(
    wait: int, cancel: Callable[[Handler, int], None]
) -> None:
    handler = Handler(3)
    handler.begin()
    for future in handler.futures[:wait]:
        future.set_result(None)
        await turns()
    cancel(handler, wait)
    await turns()
    assert (handler.answers, handler.cancelled) == ([], 1)


async def test_a_cancelled_handler_leaves_no_unread_error() -> None:
    loop = asyncio.get_running_loop()
    logged: list[object] = []
    loop.set_exception_handler(lambda _, context: logged.append(context))

    async def work() -> Answer:
        await asyncio.gather(loop.create_future(), loop.create_future())
        return None

    running = Running(work())
    running.begin(lambda _: None)
    running.cancel()
    await turns()
    del running
    gc.collect()
    assert not logged


async def test_a_handler_may_close_its_own_connection() -> None:
    seen: list[str] = []

    async def work() -> Answer:
        await asyncio.sleep(0)
        running.cancel()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return None

    answers: list[Answer | BaseException] = []
    running = Running(work())
    running.begin(answers.append)
    await turns()
    assert (answers, seen) == ([], ["cancelled"])


async def test_a_handler_may_wait_while_it_is_cancelled() -> None:
    last = asyncio.get_running_loop().create_future()
    ended: list[str] = []

    async def work() -> Answer:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await last
            ended.append("tidy")
        return None

    answers: list[Answer | BaseException] = []
    running = Running(work())
    running.begin(answers.append)
    running.cancel()
    await turns()
    last.set_result(None)
    await turns()
    assert (answers, ended) == ([], ["tidy"])


@pytest.mark.source_only
async def test_what_a_cancelled_request_would_become_is_cancelled_too() -> None:
    cancelled: list[str] = []

    class Next(Running):
        def cancel(self) -> None:
            cancelled.append("next")
            super().cancel()

    async def work() -> Answer:
        return Next(asyncio.sleep(0))

    running = Running(work())
    running.begin(lambda _: None)
    running.cancel()
    await turns()
    assert cancelled == ["next"]


async def test_a_request_that_never_began_is_closed() -> None:
    handler = Handler(1)
    handler.running.cancel()
    await turns()
    assert not handler.answers
