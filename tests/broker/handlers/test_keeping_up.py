"""Tests followers that keep up: the short way gives the same answers and records the same progress as the general way,
after any course of their sessions."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from broker.fetch import reading, sessions
from broker.fetch.fetch import Fetch
from broker.fetch.reading import keeps_up
from broker.replica.partition import Partition
from coordinator.replication.isr import IsrRules
from coordinator.replication.roles import Leading
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from tests.broker.asking import batch, produce_request
from tests.broker.following import FOLLOWER, follow
from tests.broker.inprocess import Client, InProcess, request_frame

VERSION, BY_NAME = 17, 12
COUNT = 4
ACKS_ONE = 1


class FollowerClient:
    """A follower of a topic's partitions, in a session, with the state that its answers have given it."""

    def __init__(self, client: Client, partitions: list[Partition]) -> None:
        self._client = client
        self._partitions = partitions
        self._session = (0, 0)
        self.ends = [0] * len(partitions)
        self._named: list[int] = list(range(len(partitions)))

    async def fetch(self, dice: Random, broker_epoch: int) -> list[object]:
        """Sends a Fetch, updates the state from the answer, and returns the answer's content."""
        named = [self._parameters(index, dice) for index in self._named]
        topic_id = self._partitions[0].topic_id
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=broker_epoch),
            max_wait_ms=2,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self._session[0],
            session_epoch=self._session[1],
            topics=[FetchTopic(topic_id=topic_id, partitions=named)] if named else [],
        )
        answer = await self._client.ask(request, VERSION, FetchResponse)
        assert answer.error_code == 0
        self._session = (answer.session_id, self._session[1] + 1)
        self._named = []
        shown: list[object] = []
        for data in (data for topic in answer.responses for data in topic.partitions):
            index, size = data.partition_index, len(data.records or b"")
            if size:
                self.ends[index] = self._partitions[index].log_end_offset
            self._named.append(index)
            shown.append((index, data.error_code, data.high_watermark, data.log_start_offset, size))
        return sorted(shown)  # type: ignore[type-var]  # tuples of integers

    def _parameters(self, index: int, dice: Random) -> FetchPartition:
        partition = self._partitions[index]
        epoch = partition.leader_epoch if dice.random() < 0.95 else partition.leader_epoch + 1
        return FetchPartition(
            partition=index,
            current_leader_epoch=epoch,
            fetch_offset=self.ends[index],
            last_fetched_epoch=partition.last_leader_epoch if self.ends[index] else -1,
            log_start_offset=dice.choice([0, 0, 0, partition.log_start_offset]),
            partition_max_bytes=1 << 20,
        )


def progress(partition: Partition) -> object:
    """Returns the follower's progress, without times."""
    assert isinstance(partition.role, Leading)
    one = partition.role.followers[FOLLOWER]
    offsets = one.log_end_offset, one.log_start_offset, one.leader_end_offset, one.broker_epoch
    return offsets, one.caught_up_ms > 0, one.fetched_ms > 0, partition.high_watermark


async def course(path: Path, seed: int) -> list[object]:
    """Returns all answers of a random course, and the leader's knowledge of its follower after each."""
    dice = Random(seed)
    transcript: list[object] = []
    async with InProcess(path) as broker:
        await broker.create_topic("t", COUNT)
        replicas = broker.server.broker.replicas
        partitions = [replicas.partition("t", index) for index in range(COUNT)]
        for partition in partitions:
            partition.rules = IsrRules(lambda _: True, lambda: 30_000, lambda _: 7)
            follow(partition)
        follower = FollowerClient(broker.client(), partitions)
        for _ in range(25):
            for _ in range(dice.choice([0, 0, 1, 2])):
                index = dice.randrange(COUNT)
                broker.client().send(request_frame(produce_request("t", (index, batch(b"v")), acks=ACKS_ONE), BY_NAME))
            if dice.random() < 0.1:
                chosen = dice.choice(partitions)
                chosen.advance_log_start(chosen.high_watermark)
            answered = await follower.fetch(dice, dice.choice([7, 7, 7, 7, -1, 6]))
            transcript.append((answered, [progress(partition) for partition in partitions]))
    return transcript


@pytest.mark.source_only
@pytest.mark.parametrize("seed", range(3))
async def test_both_ways_answer_and_note_the_same(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def counting(*arguments: object) -> Partition | None:
        partition = keeps_up(*arguments)  # type: ignore[arg-type]
        taken.append(partition is not None)
        return partition

    monkeypatch.setattr(sessions, "SWEEP_MS", 0)  # each fetch reads all partitions, on slow machines and on fast ones
    monkeypatch.setattr(reading, "keeps_up", counting)
    short = await course(tmp_path / "short", seed)
    assert taken.count(True) > COUNT
    monkeypatch.setattr(reading, "keeps_up", lambda *_: None)
    monkeypatch.setattr(Fetch, "has_no_news", lambda *_: False)
    assert await course(tmp_path / "general", seed) == short


async def test_the_news_of_a_high_watermark_goes_out_as_the_wait_ends(broker: InProcess) -> None:
    await broker.create_topic("t")
    partition = broker.server.broker.replicas.partition("t", 0)
    follow(partition)
    follower = FollowerClient(broker.client(), [partition])
    dice = Random(0)
    broker.client().send(request_frame(produce_request("t", (0, batch(b"v")), acks=ACKS_ONE), BY_NAME))
    assert [data[2] for data in await follower.fetch(dice, -1)] == [0]  # type: ignore[index]
    assert [data[2] for data in await follower.fetch(dice, -1)] == [1]  # type: ignore[index]
    assert await follower.fetch(dice, -1) == []
