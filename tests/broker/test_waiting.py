"""Tests parked requests: woken by appends, expired by their timeout, and cancelled with their connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.replica.partition import Partition
from broker.request.context import ClientConnection, Context
from broker.request.pending import Answer, Parked
from broker.request.timeouts import Timeouts
from protocol.api_key import ApiKey
from protocol.messages.fetch import FetchResponse
from tests.broker.fetch.test_wire import ALL, filled, request
from tests.broker.inprocess import LONG_S, InProcess, request_frame
from tests.broker.produce.test_wire import batch
from tests.broker.produce.test_wire import request as produce_request

LONG_MS = 3_600_000


CONTEXT = Context(ClientConnection("", lambda _, answer: answer), ApiKey.FETCH, 12, 1, None, 100)


class Scripted(Parked):
    """A parked request with scripted answers."""

    def __init__(self) -> None:
        super().__init__(CONTEXT, 10, committed_only=False)
        self.script: list[list[bytes] | Exception | None] = []
        """The answers of its attempts in turn; None keeps waiting."""
        self.answers: list[Answer | Exception] = []
        self.is_answered = asyncio.Event()
        self.begin(self.take)

    def take(self, answer: Answer | Exception) -> None:
        self.answers.append(answer)
        self.is_answered.set()

    def try_complete(self, *, is_last: bool) -> Answer:
        answer = self.script.pop(0) if self.script else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return list(answer)
        return [b"in vain"] if is_last else self


@pytest.fixture
async def timeouts() -> Timeouts:
    return Timeouts(SystemClock())


@pytest.mark.source_only
async def test_it_looks_once_however_often_it_is_woken() -> None:
    parked = Scripted()
    parked.script = [[b"found"], [b"again"]]
    parked.appended(9)
    await asyncio.sleep(0)
    assert parked.answers == []
    parked.appended(1)
    parked.wake()
    assert parked.answers == []  # not on the spot: an append is on its way
    await asyncio.sleep(0)
    assert parked.answers == [[b"found"]]


@pytest.mark.source_only
async def test_it_goes_on_waiting_where_there_is_too_little() -> None:
    parked = Scripted()
    parked.script = [None, [b"found"]]
    for _ in range(2):
        assert parked.answers == []
        parked.wake()
        await asyncio.sleep(0)
    assert parked.answers == [[b"found"]]


@pytest.mark.source_only
async def test_what_goes_wrong_is_told() -> None:
    parked = Scripted()
    parked.script = [error := ZeroDivisionError()]
    parked.wake()
    await asyncio.sleep(0)
    assert parked.answers == [error]


@pytest.mark.source_only
async def test_one_that_is_cancelled_says_nothing() -> None:
    parked = Scripted()
    parked.script = [[b"found"]]
    parked.wake()
    parked.cancel()
    await asyncio.sleep(0)
    assert parked.answers == []


@pytest.mark.source_only
async def test_each_ends_at_its_own_time(timeouts: Timeouts) -> None:
    first, second, longer = Scripted(), Scripted(), Scripted()
    for parked, wait_ms in ((first, 1), (second, 2), (longer, LONG_MS)):
        timeouts.add(parked, wait_ms)
    async with asyncio.timeout(LONG_S):
        await second.is_answered.wait()
    assert first.answers == second.answers == [[b"in vain"]]
    assert longer.answers == []


@pytest.mark.source_only
async def test_those_that_are_over_are_not_kept(timeouts: Timeouts) -> None:
    for _ in range(100):
        timeouts.add(parked := Scripted(), LONG_MS)
        parked.cancel()
    assert sum(map(len, timeouts._queues.values())) == 1


class Late(Scripted):
    """A parked request whose connection begins to wait later."""

    def begin(self, done: Callable[[Answer | Exception], None]) -> None:
        """Does nothing until `wait`."""

    def wait(self) -> None:
        super().begin(self.take)


@pytest.mark.source_only
async def test_a_wake_before_its_connection_waits_is_not_lost() -> None:
    parked = Late()
    parked.script = [[b"found"]]
    parked.wake()
    await asyncio.sleep(0)
    assert parked.answers == []
    parked.wait()
    await asyncio.sleep(0)
    assert parked.answers == [[b"found"]]


@pytest.mark.source_only
async def test_a_request_that_expires_before_its_connection_waits_is_answered() -> None:
    parked = Late()
    parked.expire()
    assert parked.answers == []
    parked.wait()
    await asyncio.sleep(0)
    assert parked.answers == [[b"in vain"]]


async def partition_of(broker: InProcess, index: int) -> Partition:
    (partition,) = [one for one in broker.server.broker.replicas if one.name.partition == index]
    return partition


async def test_nothing_is_left_of_a_fetch_that_was_answered_or_whose_client_is_gone(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await filled(broker)
        partition, fetch_request = await partition_of(broker, 1), request(topic_id, (1, 0, ALL), wait_ms=LONG_MS)
        consumer, other = broker.client(), broker.client()
        for client in (consumer, other):
            client.send(request_frame(fetch_request, 13))
        assert len(partition.waiters) == 2
        other.connection.connection_lost(None)
        assert len(partition.waiters) == 1
        broker.client().send(request_frame(produce_request(topic_id, (1, batch(2))), 13))
        await consumer.frames(1)
        assert not partition.waiters


async def test_it_waits_for_as_many_bytes_as_were_asked_for(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await filled(broker)
        consumer, producer = broker.client(), broker.client()
        least = 3 * len(batch())
        fetch_request = request(topic_id, (1, 0, ALL), wait_ms=LONG_MS, min_bytes=least)
        pending = asyncio.ensure_future(consumer.ask(fetch_request, 13, FetchResponse))
        for _ in range(3):
            await asyncio.sleep(0)
            assert not pending.done()
            producer.send(request_frame(produce_request(topic_id, (1, batch())), 13))
        answer = await pending
        assert len(answer.responses[0].partitions[0].records or b"") == least
