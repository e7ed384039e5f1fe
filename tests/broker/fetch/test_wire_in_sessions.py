"""Tests that the short cut of a Fetch in a session gives the same answer as the general way, byte for byte, after any
course of the session."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from broker.dispatch.api import WireParser
from broker.fetch import wire
from broker.handlers.fetch import parsed_in_place, serve_parsed
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchResponse, ForgottenTopic
from tests.broker.fetch.test_wire import ALL, filled, request
from tests.broker.inprocess import Client, InProcess, decode_response, parse_by, request_frame
from tests.broker.produce.test_wire import batch
from tests.broker.produce.test_wire import request as produce_request

SESSION_ID = 7
LONG_MS = 3_600_000
STEPS = 25
USUAL, FORGETTING, BEHIND, IN_ANOTHER = "usual", "forgetting", "behind", "in another"


class Conversation:
    """One consumer's fetches, and the records that are produced between them; the same for the same seed."""

    def __init__(self, broker: InProcess, topic_id: bytes, seed: int) -> None:
        self.random = random.Random(seed)
        self.broker = broker
        self.topic_id = topic_id
        self.version = self.random.choice((13, 15, 17))
        self.consumer, self.producer = broker.client(), broker.client()
        self.epoch = 0
        self.heard: list[bytes] = []

    async def run(self) -> list[bytes]:
        await self.ask([0, 1, 2], wait_ms=0)
        for _ in range(STEPS):
            await self.step()
        return [frame.replace(self.topic_id, bytes(16)) for frame in self.heard]

    async def step(self) -> None:
        kind = self.random.choices((USUAL, FORGETTING, BEHIND, IN_ANOTHER), (20, 1, 1, 1))[0]
        named = self.random.sample(range(3), self.random.randrange(3))
        wait_ms = self.random.choice((0, LONG_MS))
        if kind == USUAL and self.random.random() < 0.4:
            await self.produce(self.random.randrange(3))
        await self.ask(named, wait_ms=wait_ms, kind=kind)

    async def ask(self, named: list[int], *, wait_ms: int, kind: str = USUAL) -> None:
        partitions = [(index, self.offset(index), self.random.choice((ALL, ALL, 700))) for index in named]
        fields: dict[str, object] = {
            "session_id": 0 if self.epoch == 0 else SESSION_ID + (kind == IN_ANOTHER),
            "session_epoch": self.epoch + (kind == BEHIND),
            "isolation_level": self.random.randrange(2),
            "max_bytes": self.random.choice((ALL, 900)),
        }
        if kind == FORGETTING:
            fields["forgotten_topics_data"] = [ForgottenTopic(topic="", topic_id=self.topic_id, partitions=[2])]
        self.consumer.send(request_frame(request(self.topic_id, *partitions, wait_ms=wait_ms, **fields), self.version))
        await self.woken(self.consumer)
        self.heard += self.consumer.wire.take()
        self.epoch += kind in (USUAL, FORGETTING)

    def offset(self, index: int) -> int:
        end = self.end(index)
        return end if self.random.random() < 0.7 else self.random.randrange(end + 1)

    def end(self, index: int) -> int:
        (partition,) = [one for one in self.broker.server.broker.replicas if one.name.partition == index]
        return partition.high_watermark

    async def woken(self, consumer: Client) -> None:
        """Wakes the fetch, and appends records if it waits. A partition that the session has forgotten doesn't wake
        it."""
        for index in (0, 1, 2):
            for _ in range(5):
                await asyncio.sleep(0)
            if consumer.wire.sent:
                return
            await self.produce(index)
        for _ in range(5):
            await asyncio.sleep(0)

    async def produce(self, index: int) -> None:
        self.producer.send(request_frame(produce_request(self.topic_id, (index, batch(2))), 13))
        await self.producer.frames(1)


async def talk(directory: Path, seed: int) -> list[bytes]:
    async with InProcess(directory) as broker:
        broker.server.broker.fetches.sessions.new_id = lambda: SESSION_ID
        return await Conversation(broker, await filled(broker), seed).run()


@pytest.mark.parametrize("seed", range(30))
async def test_both_ways_say_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []

    def counted(*arguments: Any) -> object:
        taken.append((parsed := parsed_in_place(*arguments)) is not None)
        return parsed

    parse_by(monkeypatch, ApiKey.FETCH, WireParser(counted, serve_parsed, wire.FIRST_VERSION))
    fast_way = await talk(tmp_path / "fast", seed)
    assert taken.count(True) > STEPS / 2
    parse_by(monkeypatch, ApiKey.FETCH, None)
    assert fast_way == await talk(tmp_path / "general", seed)
    assert len(fast_way) == STEPS + 1


async def test_what_becomes_unusual_while_it_waits_is_left_to_the_general_way(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        broker.server.broker.fetches.sessions.new_id = lambda: SESSION_ID
        talking = Conversation(broker, await filled(broker), 0)
        await talking.ask([0, 1, 2], wait_ms=0)
        ends = [(index, talking.end(index), ALL) for index in range(3)]
        waiting = request(talking.topic_id, *ends, wait_ms=LONG_MS, session_id=SESSION_ID, session_epoch=1)
        talking.consumer.send(request_frame(waiting, 17))
        (partition,) = [one for one in broker.server.broker.replicas if one.name.partition == 1]
        await broker.settled()
        broker.server.broker.replicas.remove(partition.name)
        topic = broker.server.broker.image.topic_by_id(talking.topic_id)
        assert topic is not None
        del topic.partitions[1]
        for _ in range(5):
            await asyncio.sleep(0)
        await talking.produce(0)  # a partition that is unknown keeps nobody from waiting for the others
        (frame,) = await talking.consumer.frames(1)
        (answered,) = decode_response(frame, ApiKey.FETCH, 17, FetchResponse).responses
        answers = {
            partition.partition_index: (partition.error_code, bool(partition.records))
            for partition in answered.partitions
        }
        assert answers == {0: (ErrorCode.NONE, True), 1: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False)}
        assert broker.server.broker.fetches.sessions.sessions[SESSION_ID].epoch == 2
