"""Tests the queue to a receiver of pushes: receivers that are unreachable, reject pushes, or are too slow."""

from __future__ import annotations

import asyncio

import pytest

from broker.telemetry.push import Push
from broker.telemetry.queue import ATTEMPTS, MAX_QUEUED_BYTES, NotTaken, PushQueue
from coordinator.telemetry.subscriptions import ClientAttributes
from protocol.errors import ErrorCode, KafkaError
from tests.clock import ManualClock

ATTRIBUTES = ClientAttributes("one", None, "unknown", "unknown", "127.0.0.1", "1")


def push(data: bytes = b"x") -> Push:
    return Push(ATTRIBUTES, "User:ANONYMOUS", 1000, data)


class Receiver:
    """Raises its errors in turn, and accepts a push once no error is left."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.taken: list[bytes] = []
        self.calls = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def deliver(self, one: Push) -> None:
        await self.gate.wait()
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        self.taken.append(one.data)


def queue_to(receiver: Receiver) -> tuple[PushQueue, ManualClock]:
    clock = ManualClock()
    return PushQueue("r", receiver.deliver, clock), clock


async def settled(queue: PushQueue, clock: ManualClock) -> None:
    """Lets the pauses pass until the queue is empty."""
    async with asyncio.timeout(60):
        while queue.held_bytes:
            clock.advance(60_000)
            await asyncio.sleep(0)


AWAY = NotTaken("away", is_final=False)
BUSY = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


@pytest.mark.parametrize("error", [AWAY, BUSY])
async def test_one_that_is_away_gets_a_push_again_and_the_next_one_after_it(error: Exception) -> None:
    receiver = Receiver(*[error] * (ATTEMPTS - 1))
    queue, clock = queue_to(receiver)
    queue.take(push(b"a"))
    queue.take(push(b"b"))
    await settled(queue, clock)
    assert receiver.taken == [b"a", b"b"]
    assert (queue.delivered, queue.dropped) == (2, 0)


@pytest.mark.parametrize("errors", [
    [AWAY] * ATTEMPTS,
    [NotTaken("no", is_final=True)],
    [KafkaError(ErrorCode.INVALID_RECORD)],
    [RuntimeError("a fault of ours")],
])  # fmt: skip
async def test_what_is_not_taken_is_dropped_and_the_next_one_is_delivered(errors: list[Exception]) -> None:
    receiver = Receiver(*errors)
    queue, clock = queue_to(receiver)
    queue.take(push(b"a"))
    queue.take(push(b"b"))
    await settled(queue, clock)
    assert receiver.taken == [b"b"]
    assert (queue.delivered, queue.dropped, receiver.calls) == (1, 1, len(errors) + 1)


async def test_a_queue_has_an_end() -> None:
    receiver = Receiver()
    receiver.gate.clear()
    queue, clock = queue_to(receiver)
    queue.take(push(bytes(MAX_QUEUED_BYTES - 1)))
    queue.take(push(b"a"))
    queue.take(push(b"b"))
    assert (queue.held_bytes, queue.dropped) == (MAX_QUEUED_BYTES, 1)
    receiver.gate.set()
    await settled(queue, clock)
    queue.take(push(b"c"))
    await settled(queue, clock)
    assert receiver.taken[1:] == [b"a", b"c"]


async def test_a_closed_queue_delivers_nothing_more() -> None:
    receiver = Receiver()
    receiver.gate.clear()
    queue, _ = queue_to(receiver)
    queue.take(push())
    await asyncio.sleep(0)
    queue.close()
    receiver.gate.set()
    await asyncio.sleep(0)
    assert receiver.taken == []
