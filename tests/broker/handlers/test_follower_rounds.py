"""Tests rounds of replication: while no request waits for commits, a follower gets its records in fewer rounds."""

from __future__ import annotations

import asyncio

import pytest

from broker.fetch.reading import HELD_BYTES, HELD_MS
from broker.replica.partition import Partition
from broker.request.timeouts import Timeouts
from coordinator.replication.roles import Following
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchResponse, PartitionData
from tests.broker.asking import batch, fetch_request, produce_request
from tests.broker.following import FOLLOWER, follow
from tests.broker.inprocess import InProcess, decode_response, request_frame
from tests.clock import ManualClock

FETCH, VERSION = 1, 12
FETCH_WAIT_MS = 500
LONG_MS = 60_000


class Rounds:
    """A leader whose clock a test advances, and the session of its follower."""

    def __init__(self, broker: InProcess, partition: Partition) -> None:
        self.broker = broker
        self.partition = partition
        self.clock = ManualClock(0)
        self.follower = broker.client()
        self.offset = 0
        self.session = (0, 0)
        fetches = broker.server.broker.fetches
        fetches.clock = self.clock
        fetches.timeouts = Timeouts(self.clock)

    def append(self, value: bytes = b"v", acks: int = 1) -> None:
        """Appends a producer's record, and ignores the answer."""
        self.broker.client().send(request_frame(produce_request("t", (0, batch(value)), acks=acks), VERSION))

    def fetch(self, max_wait_ms: int = FETCH_WAIT_MS) -> None:
        """Sends the follower's next fetch."""
        request = fetch_request("t", self.offset, session=self.session, max_wait_ms=max_wait_ms)
        request.replica_id = FOLLOWER
        self.follower.send(request_frame(request, VERSION))

    async def answer(self) -> FetchResponse | None:
        """Returns the answer to the last fetch; None if there is none yet."""
        for _ in range(3):
            await asyncio.sleep(0)
        frames = self.follower.wire.take()
        if not frames:
            return None
        (frame,) = frames
        answer = decode_response(frame, FETCH, VERSION, FetchResponse)
        self.session = (answer.session_id, self.session[1] + 1)
        return answer

    async def got(self) -> int | None:
        """Returns the number of records in the answer, which have a byte each; None without an answer. The next fetch
        continues after them."""
        answer = await self.answer()
        if answer is None:
            return None
        parts: list[PartitionData] = [part for topic in answer.responses for part in topic.partitions]
        count = sum(len(part.records or b"") for part in parts) // len(batch(b"v"))
        self.offset += count
        return count

    async def begin(self) -> None:
        """Gives the follower a record, and sends its next fetch."""
        self.append()
        self.fetch()
        assert await self.got() == 1
        self.fetch()
        assert await self.got() in (None, 0), "an answer that only has the high watermark waits for nobody"
        if not self.partition.append_waiters:
            self.fetch()
            assert await self.got() is None


@pytest.fixture
async def rounds(broker: InProcess) -> Rounds:
    await broker.create_topic("t")
    partition = broker.server.broker.replicas.partition("t", 0)
    follow(partition)
    return Rounds(broker, partition)


async def test_records_in_quick_succession_go_together(rounds: Rounds) -> None:
    await rounds.begin()
    rounds.append()
    rounds.append()
    rounds.clock.advance(HELD_MS - 1)
    rounds.append()
    assert await rounds.got() is None
    rounds.clock.advance(1)
    assert await rounds.got() == 3
    assert not rounds.partition.held
    assert not rounds.partition.append_waiters


async def test_what_is_there_when_a_follower_comes_back_at_once_waits_for_more(rounds: Rounds) -> None:
    await rounds.begin()
    rounds.clock.advance(HELD_MS)
    rounds.append()
    assert await rounds.got() == 1
    rounds.append()
    rounds.clock.advance(1)
    rounds.fetch()
    rounds.append()
    assert await rounds.got() is None
    rounds.clock.advance(HELD_MS - 1)
    assert await rounds.got() == 2


async def test_after_a_pause_a_record_is_sent_at_once(rounds: Rounds) -> None:
    await rounds.begin()
    rounds.clock.advance(HELD_MS)
    assert await rounds.got() is None, "nothing has come: it waits as ever"
    rounds.append()
    assert await rounds.got() == 1


async def test_who_waits_no_longer_than_a_moment_is_not_held_for_longer(rounds: Rounds) -> None:
    await rounds.begin()
    rounds.clock.advance(HELD_MS)
    rounds.append()
    assert await rounds.got() == 1
    rounds.append()
    rounds.fetch(max_wait_ms=2)
    rounds.clock.advance(2)
    assert await rounds.got() == 1


def produce_to_all(rounds: Rounds) -> None:
    rounds.append(acks=-1)


def consume_at_end(rounds: Rounds) -> None:
    committed = rounds.partition.high_watermark
    rounds.broker.client().send(request_frame(fetch_request("t", committed, max_wait_ms=LONG_MS), VERSION))


def wait_for_commit(rounds: Rounds) -> None:
    rounds.partition.when_committed(rounds.partition.log_end_offset, lambda _: None)


WAITING = pytest.mark.parametrize(
    ("waits", "more"), [(produce_to_all, 1), (consume_at_end, 0), (wait_for_commit, 0)]
)  # fmt: skip


@WAITING
async def test_who_begins_to_wait_for_a_commit_has_it_sent_at_once(waits: object, more: int, rounds: Rounds) -> None:
    await rounds.begin()
    rounds.append()
    assert await rounds.got() is None
    waits(rounds)  # type: ignore[operator]
    assert await rounds.got() == 1 + more


@WAITING
async def test_for_who_waits_already_a_round_begins_at_once(waits: object, more: int, rounds: Rounds) -> None:
    await rounds.begin()
    rounds.clock.advance(HELD_MS)
    rounds.append()
    assert await rounds.got() == 1
    rounds.append()
    waits(rounds)  # type: ignore[operator]
    rounds.fetch()
    assert await rounds.got() == 1 + more


async def test_as_much_as_is_worth_a_round_is_sent_at_once(rounds: Rounds) -> None:
    await rounds.begin()
    rounds.append(bytes(HELD_BYTES // 2))
    assert await rounds.answer() is None
    rounds.append(bytes(HELD_BYTES // 2))
    answer = await rounds.answer()
    assert answer is not None
    assert len(answer.responses[0].partitions[0].records or b"") > HELD_BYTES


async def test_one_without_a_session_is_never_held(rounds: Rounds) -> None:
    rounds.session = (0, -1)
    for _ in range(3):
        rounds.append()
        rounds.fetch()
        rounds.session = (0, -1)
        assert await rounds.got() == 1
        rounds.session = (0, -1)


async def test_a_leader_that_goes_says_so_at_once(rounds: Rounds) -> None:
    await rounds.begin()
    rounds.append()
    assert await rounds.got() is None
    rounds.partition.become(Following(FOLLOWER, 7, 1), 0)
    answer = await rounds.answer()
    assert answer is not None
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not rounds.partition.held


async def test_a_follower_that_goes_while_it_is_held_leaves_nothing(rounds: Rounds) -> None:
    await rounds.begin()
    rounds.append()
    assert await rounds.got() is None
    assert rounds.partition.held
    rounds.follower.connection.connection_lost(None)
    await asyncio.sleep(0)
    assert not rounds.partition.held
    assert not rounds.partition.append_waiters
    rounds.clock.advance(FETCH_WAIT_MS)
