"""Tests the engine: records before replies, replies after commits, no partial results."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from functools import partial
from random import Random
from weakref import WeakSet

import pytest

from coordinator.engine.engine import Engine
from coordinator.engine.loaded import Status
from coordinator.engine.machine import EXPIRY_RETRY_MS
from coordinator.engine.result import Result, Ticket, answered, reply
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Buffer
from tests.clock import ManualClock

KEY = "the shard"
START_MS = 1_000


class Counter:
    """A shard whose state is a sum. A request with `at_least` waits until the sum is reached, or gets -1 at a
    deadline."""

    def __init__(self) -> None:
        self.total = 0
        self.waiting: list[tuple[int, int, Ticket[int]]] = []  # sum, deadline, ticket

    def add(self, amount: int, ticket: Ticket[int]) -> Result[int]:
        if amount < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "only upwards")
        total = self.total + amount
        reached = [reply(ticket, total) for least, _, ticket in self.waiting if least <= total]
        waiting = [item for item in self.waiting if item[0] > total]
        return Result([amount], [reply(ticket, total), *reached], [partial(self.wait, waiting)])

    def at_least(self, least: int, ticket: Ticket[int], now_ms: int) -> Result[int]:
        return Result(effects=[partial(self.wait, [*self.waiting, (least, now_ms + 500, ticket)])])

    def wait(self, waiting: list[tuple[int, int, Ticket[int]]]) -> None:
        self.waiting = waiting

    def read(self, ticket: Ticket[int]) -> Result[int]:
        return answered(ticket, self.total)

    def apply(self, record: int) -> None:
        self.total += record

    def expire(self, now_ms: int) -> Result[int]:
        late = [reply(ticket, -1) for _, deadline_ms, ticket in self.waiting if deadline_ms <= now_ms]
        return Result([1000], late, [partial(self.wait, [item for item in self.waiting if item[1] > now_ms])])

    def next_deadline_ms(self) -> int | None:
        return min((deadline_ms for _, deadline_ms, _ in self.waiting), default=None)

    def expire_failed(self, error: Exception, now_ms: int) -> int:
        return now_ms + EXPIRY_RETRY_MS


class Bytes:
    """A serde with one byte per record up to 127, and two bytes for a thousand."""

    def encode(self, records: Sequence[int], now_ms: int) -> bytearray:
        return bytearray(min(record, 255) for record in records)

    def decode(self, batches: Buffer) -> Iterator[int]:
        yield from bytes(batches)


class Memory:
    """A log in memory, which commits when a test says so."""

    def __init__(self, content: Sequence[int] = (), *, commit: bool = True) -> None:
        self.content = bytearray(content)
        self.commits_at_once = commit
        self.waiting: list[tuple[int, Callable[[KafkaError | None], None]]] = []
        self.refuses: KafkaError | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    def append(self, batches: bytearray) -> int:
        if self.refuses is not None:
            raise self.refuses
        self.content += batches
        return len(self.content)

    def when_committed(self, offset: int, then: Callable[[KafkaError | None], None]) -> None:
        if self.commits_at_once or not offset:
            then(None)
        else:
            self.waiting.append((offset, then))

    @property
    def end_offset(self) -> int:
        return len(self.content)

    def commit(self, error: KafkaError | None = None) -> None:
        waiting, self.waiting = self.waiting, []
        for _, then in waiting:
            then(error)

    async def read(self) -> AsyncIterator[Buffer]:
        for byte in bytes(self.content):
            await self.gate.wait()
            yield bytes([byte])


class Setting:
    """An engine with one shard."""

    def __init__(self, storage: Memory, write_timeout_ms: Callable[[Sequence[int]], int] | None = None) -> None:
        self.clock = ManualClock(START_MS)
        self.failures: list[tuple[Hashable, ErrorCode]] = []
        self.engine: Engine[int] = Engine(
            self.clock, lambda key, error: self.failures.append((key, error.code)), write_timeout_ms
        )
        self.shard = Counter()
        self.storage = storage

    async def load(self) -> None:
        await self.engine.load(KEY, self.shard, self.storage, Bytes())

    async def loaded(self) -> Setting:
        await self.load()
        return self

    async def add(self, amount: int) -> int:
        return await self.engine.submit(KEY, lambda ticket, _: self.shard.add(amount, ticket))

    async def at_least(self, least: int) -> int:
        return await self.engine.submit(KEY, lambda ticket, now_ms: self.shard.at_least(least, ticket, now_ms))

    async def read(self) -> int:
        return await self.engine.submit(KEY, lambda ticket, _: self.shard.read(ticket))


async def soon(work: asyncio.Future[int]) -> bool:
    """Returns True if the work is done once everything that can run has run."""
    for _ in range(5):
        await asyncio.sleep(0)
    return work.done()


async def test_an_answer_comes_with_its_records_appended_and_applied() -> None:
    setting = await Setting(Memory()).loaded()
    assert await setting.add(3) == 3
    assert (bytes(setting.storage.content), setting.shard.total) == (b"\x03", 3)


async def test_an_answer_waits_for_the_commit_but_the_state_does_not() -> None:
    setting = await Setting(Memory(commit=False)).loaded()
    answer = asyncio.ensure_future(setting.add(3))
    assert not await soon(answer)
    assert setting.shard.total == 3
    setting.storage.commit()
    assert await answer == 3


async def test_a_read_waits_for_what_it_saw_to_be_committed() -> None:
    setting = await Setting(Memory(commit=False)).loaded()
    answers = [asyncio.ensure_future(setting.add(3)), asyncio.ensure_future(setting.read())]
    assert not await soon(answers[1])
    assert [offset for offset, _ in setting.storage.waiting] == [1, 1]
    setting.storage.commit()
    assert await answers[1] == 3


async def test_a_refused_request_leaves_nothing() -> None:
    setting = await Setting(Memory()).loaded()
    with pytest.raises(KafkaError, match="only upwards"):
        await setting.add(-1)
    assert (bytes(setting.storage.content), setting.shard.total) == (b"", 0)


async def test_a_parked_request_is_answered_by_another() -> None:
    setting = await Setting(Memory()).loaded()
    parked = asyncio.ensure_future(setting.at_least(5))
    assert not await soon(parked)
    assert await setting.add(7) == 7
    assert await parked == 7


async def test_a_parked_request_whose_asker_is_gone_is_forgotten() -> None:
    setting = await Setting(Memory()).loaded()
    parked = asyncio.ensure_future(setting.at_least(5))
    await soon(parked)
    parked.cancel()
    await soon(parked)
    assert await setting.add(7) == 7


async def test_a_failed_append_is_its_requests_error_and_changes_no_state() -> None:
    setting = await Setting(Memory()).loaded()
    parked = asyncio.ensure_future(setting.at_least(5))
    await soon(parked)
    setting.storage.refuses = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    with pytest.raises(KafkaError) as caught:
        await setting.add(7)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert setting.shard.total == 0
    assert not await soon(parked)
    setting.storage.refuses = None
    assert await setting.add(6) == 6
    assert await parked == 6


async def test_a_failed_commit_costs_the_shard_its_place() -> None:
    setting = await Setting(Memory(commit=False)).loaded()
    parked = asyncio.ensure_future(setting.at_least(50))
    answer = asyncio.ensure_future(setting.add(3))
    await soon(answer)
    setting.storage.commit(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    for work in (answer, parked):
        with pytest.raises(KafkaError) as caught:
            await work
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert setting.failures == [(KEY, ErrorCode.KAFKA_STORAGE_ERROR)]
    assert setting.engine.status(KEY) is Status.FAILED
    with pytest.raises(KafkaError) as caught:
        await setting.read()
    assert caught.value.code is ErrorCode.NOT_COORDINATOR


async def test_loading_is_applying_and_requests_are_refused_until_it_is_done() -> None:
    setting = Setting(Memory([1, 2, 4]))
    setting.storage.gate.clear()
    loading = asyncio.ensure_future(setting.load())
    await asyncio.sleep(0)
    with pytest.raises(KafkaError) as caught:
        await setting.read()
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    setting.storage.gate.set()
    await loading
    assert await setting.read() == 7


async def test_a_shard_unloaded_while_it_loads_never_serves() -> None:
    setting = Setting(Memory([1, 2, 4]))
    setting.storage.gate.clear()
    loading = asyncio.ensure_future(setting.load())
    await asyncio.sleep(0)
    setting.engine.unload(KEY)
    setting.storage.gate.set()
    await loading
    assert setting.engine.status(KEY) is None
    with pytest.raises(KafkaError) as caught:
        await setting.read()
    assert caught.value.code is ErrorCode.NOT_COORDINATOR


async def test_unloading_sends_those_who_wait_elsewhere() -> None:
    setting = await Setting(Memory()).loaded()
    parked = asyncio.ensure_future(setting.at_least(5))
    await soon(parked)
    setting.engine.unload(KEY)
    with pytest.raises(KafkaError) as caught:
        await parked
    assert caught.value.code is ErrorCode.NOT_COORDINATOR


async def test_a_refusal_that_nobody_waits_for_is_no_bug() -> None:
    heard: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: heard.append(context))
    setting = await Setting(Memory()).loaded()
    setting.engine.submit(KEY, lambda ticket, now_ms: setting.shard.at_least(5, ticket, now_ms))
    setting.engine.unload(KEY)
    await asyncio.sleep(0)  # its callbacks run
    gc.collect()
    assert not heard


async def test_a_deadline_makes_records_and_replies() -> None:
    setting = await Setting(Memory()).loaded()
    parked = asyncio.ensure_future(setting.at_least(5))
    await soon(parked)
    setting.clock.advance(499)
    assert not await soon(parked)
    setting.clock.advance(1)
    assert await parked == -1
    assert setting.shard.total == 1000
    assert setting.clock.timers == []


async def test_one_timer_is_armed_at_the_earliest_deadline() -> None:
    setting = await Setting(Memory()).loaded()
    first = asyncio.ensure_future(setting.at_least(5))
    await soon(first)
    setting.clock.advance(100)
    second = asyncio.ensure_future(setting.at_least(6))
    await soon(second)
    assert [timer.when_ms for timer in setting.clock.timers] == [1_500]
    setting.clock.advance(400)
    assert [timer.when_ms for timer in setting.clock.timers] == [1_600]
    assert await first == -1
    setting.clock.advance(100)
    assert await second == -1


async def test_unloaded_machines_are_not_kept_until_their_deadlines() -> None:
    setting, kept = Setting(Memory()), WeakSet[Counter]()
    for key in range(1_000):
        shard = Counter()
        kept.add(shard)
        shard.waiting = [(5, START_MS + 1_000_000 + key, Ticket())]
        await setting.engine.load(key, shard, Memory(), Bytes())
        setting.engine.unload(key)
    assert len(kept) <= 100
    setting.clock.advance(2_000_000)
    assert not setting.failures


async def test_machines_are_due_at_their_deadlines_whatever_was_unloaded() -> None:
    dice, setting = Random(1), Setting(Memory())
    shards: dict[int, tuple[Counter, int]] = {}
    for now_ms in range(START_MS, START_MS + 1_000):
        key, shard = dice.randrange(300), Counter()
        deadlines_ms = sorted((now_ms + dice.randrange(1, 400) for _ in range(3)), reverse=True)
        setting.engine.unload(key)
        await setting.engine.load(key, shard, Memory(), Bytes())
        for deadline_ms in deadlines_ms:
            shard.wait([(5, deadline_ms, Ticket())])
            setting.engine.arm(key)
        shards[key] = shard, deadlines_ms[-1]
        setting.clock.advance(1)
        for shard, deadline_ms in shards.values():
            assert bool(shard.waiting) == (deadline_ms > now_ms + 1)


class Due(Counter):
    """A shard with a record to write at 1,500 ms."""

    def next_deadline_ms(self) -> int | None:
        return None if self.total else 1_500


async def test_an_expiry_that_cannot_be_written_is_tried_again_later() -> None:
    setting = Setting(Memory())
    setting.shard = Due()
    await setting.load()
    setting.storage.refuses = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    setting.clock.advance(500)
    assert [timer.when_ms for timer in setting.clock.timers] == [1_500 + EXPIRY_RETRY_MS]
    setting.storage.refuses = None
    setting.clock.advance(EXPIRY_RETRY_MS)
    assert setting.shard.total == 1000
    assert setting.clock.timers == []
