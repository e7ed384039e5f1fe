"""Tests the longest time that a decision waits for its commit, on a clock that tests set."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from coordinator.engine.loaded import Status
from protocol.errors import ErrorCode, KafkaError
from tests.coordinator.engine.test_engine import KEY, Memory, Setting, soon

TIMEOUT_MS = 5_000


async def never_committed(timeout_ms: int = TIMEOUT_MS) -> Setting:
    return await Setting(Memory(commit=False), lambda _: timeout_ms).loaded()


async def error_of(work: asyncio.Future[int]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await work
    return caught.value.code


async def test_who_waits_too_long_for_a_commit_is_told_so() -> None:
    setting = await never_committed()
    answer = asyncio.ensure_future(setting.add(3))
    await soon(answer)
    setting.clock.advance(TIMEOUT_MS - 1)
    assert not await soon(answer)
    setting.clock.advance(1)
    assert await error_of(answer) is ErrorCode.REQUEST_TIMED_OUT


async def test_what_timed_out_stays_decided_and_can_be_committed_later() -> None:
    setting = await never_committed()
    late = asyncio.ensure_future(setting.add(3))
    await soon(late)
    setting.clock.advance(TIMEOUT_MS)
    assert await error_of(late) is ErrorCode.REQUEST_TIMED_OUT
    setting.storage.commit()
    setting.storage.commits_at_once = True
    assert await setting.read() == 3
    assert setting.engine.status(KEY) is Status.ACTIVE
    assert setting.failures == []


async def test_a_commit_in_time_leaves_nobody_behind() -> None:
    setting = await never_committed()
    answer = asyncio.ensure_future(setting.add(3))
    await soon(answer)
    setting.clock.advance(TIMEOUT_MS - 1)
    setting.storage.commit()
    assert await answer == 3
    setting.clock.advance(TIMEOUT_MS)
    assert setting.clock.timers == []


async def test_each_waits_for_its_own_time() -> None:
    setting = await never_committed()
    first = asyncio.ensure_future(setting.add(1))
    await soon(first)
    setting.clock.advance(3_000)
    second = asyncio.ensure_future(setting.add(2))
    await soon(second)
    setting.clock.advance(2_000)
    assert await error_of(first) is ErrorCode.REQUEST_TIMED_OUT
    assert not await soon(second)
    setting.storage.commit()
    assert await second == 3


async def test_a_read_of_what_is_not_committed_waits_no_longer_than_a_write() -> None:
    setting = await never_committed()
    answers = [asyncio.ensure_future(setting.add(3)), asyncio.ensure_future(setting.read())]
    await soon(answers[1])
    setting.clock.advance(TIMEOUT_MS)
    assert [await error_of(answer) for answer in answers] == [ErrorCode.REQUEST_TIMED_OUT] * 2


async def test_a_request_that_waits_for_others_is_not_late_by_it() -> None:
    setting = await Setting(Memory(), lambda _: 100).loaded()
    parked = asyncio.ensure_future(setting.at_least(5))
    await soon(parked)
    setting.clock.advance(400)
    assert not await soon(parked)
    assert await setting.add(5) == 5
    assert await parked == 5


async def test_those_whom_a_late_write_would_have_answered_are_told_with_it() -> None:
    setting = await never_committed(100)
    parked = asyncio.ensure_future(setting.at_least(5))
    await soon(parked)
    answer = asyncio.ensure_future(setting.add(5))
    await soon(answer)
    setting.clock.advance(100)
    assert await error_of(answer) is ErrorCode.REQUEST_TIMED_OUT
    assert await error_of(parked) is ErrorCode.REQUEST_TIMED_OUT


async def test_a_time_limit_is_that_of_the_records() -> None:
    def by_amount(records: Sequence[int]) -> int:
        return 100 * sum(records)

    setting = await Setting(Memory(commit=False), by_amount).loaded()
    long, short = asyncio.ensure_future(setting.add(9)), asyncio.ensure_future(setting.add(1))
    await soon(short)
    setting.clock.advance(100)
    assert await error_of(short) is ErrorCode.REQUEST_TIMED_OUT
    assert not await soon(long)
    setting.clock.advance(800)
    assert await error_of(long) is ErrorCode.REQUEST_TIMED_OUT


async def test_without_a_limit_a_commit_may_take_as_long_as_it_takes() -> None:
    setting = await Setting(Memory(commit=False)).loaded()
    answer = asyncio.ensure_future(setting.add(3))
    await soon(answer)
    assert setting.clock.timers == []
    setting.clock.advance(1_000_000)
    assert not await soon(answer)
