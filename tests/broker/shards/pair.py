"""Two whole brokers in one process, each of which believes that both are members of one cluster; either can lead
partitions.

Each has its own metadata, with the same topics. Their requests to each other are passed on as frames.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from client.errors import PeerUnavailable
from coordinator.cluster.record import MetadataBatch, MetadataRecord
from protocol.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from protocol.schema import identity
from protocol.types import TopicPartition
from tests.broker.inprocess import Client, InProcess
from tests.waiting import until

R = TypeVar("R")

IDS = (1, 2)
OPTIONS = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "odradek.profile": "dev",
}
TRANSACTION_STATE, OFFSETS, SHARE_STATE = "__transaction_state", "__consumer_offsets", "__share_group_state"
SOON_S = 30


class Pair:
    """Both brokers, by node id."""

    def __init__(self) -> None:
        self.brokers: dict[int, InProcess] = {}
        self.cut: set[int] = set()
        """The brokers that are unreachable."""
        self.sent: Counter[tuple[str, int]] = Counter()
        """Requests between brokers, by class and destination."""
        self.before: Callable[[object], Awaitable[None]] | None = None
        """Awaited with each request before it is sent."""

    def client(self, broker_id: int) -> Client:
        return self.brokers[broker_id].client()

    def make(self, topic: str, *leaders: int) -> bytes:
        """Creates a topic whose partitions have one replica each, on these brokers; returns its id."""
        topic_id = topic.encode().ljust(16, b"\0")[-16:]
        records: list[MetadataRecord] = [TopicRecord(name=topic, topic_id=topic_id)]
        for index, leader in enumerate(leaders):
            replicas = [leader]
            records.append(
                PartitionRecord(
                    partition_id=index, topic_id=topic_id, replicas=replicas, isr=replicas, removing_replicas=[],
                    adding_replicas=[], leader=leader, leader_epoch=0, partition_epoch=0,
                )
            )  # fmt: skip
        self.commit(*records)
        return topic_id

    def lead(self, name: TopicPartition, leader: int) -> None:
        """Makes another broker lead a partition, or the same broker in a new epoch. Each keeps its own log, because no
        broker fetches."""
        topic = self.brokers[1].server.broker.image.topic(name.topic)
        assert topic is not None
        change = PartitionChangeRecord(
            partition_id=name.partition, topic_id=topic.topic_id, leader=leader, isr=[leader], replicas=list(IDS)
        )
        self.commit(change)

    def commit(self, *records: MetadataRecord) -> None:
        for broker in self.brokers.values():
            loader = broker.server.broker.loader
            first = loader.image.offset + 1
            loader.commit(MetadataBatch(first, first + len(records) - 1, loader.image.epoch, 0, 0, records))


class PairConnections:
    """Replaces `broker.shards.connections.Connections` between the two brokers of a pair."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    async def send(self, broker_id: int, request: object, response: type[R]) -> R:
        self._pair.sent[type(request).__name__, broker_id] += 1
        await asyncio.sleep(0)
        if self._pair.before is not None:
            await self._pair.before(request)
        if broker_id in self._pair.cut:
            raise PeerUnavailable(f"broker {broker_id}", "is cut off")
        return await self._pair.client(broker_id).ask(request, identity(type(request)).versions.last, response)

    def stop(self) -> None:
        pass


@contextlib.asynccontextmanager
async def pair_on(
    directory: Path, monkeypatch: pytest.MonkeyPatch, options: Mapping[str, str] | None = None
) -> AsyncIterator[Pair]:
    pair = Pair()
    monkeypatch.setattr("broker.shards.connections.Connections", lambda *_: PairConnections(pair))
    async with contextlib.AsyncExitStack() as stack:
        for node_id in IDS:
            own = {**OPTIONS, "node.id": str(node_id), **(options or {})}
            broker = InProcess(directory / str(node_id), own)
            pair.brokers[node_id] = await stack.enter_async_context(broker)
        yield pair


def name_in(partition: int, partition_of: Callable[[str], int], prefix: str) -> str:
    """Returns a key that belongs to this partition of a coordinator's topic."""
    return next(key for number in range(1000) if partition_of(key := f"{prefix}-{number}") == partition)


async def eventually(look: Callable[[], object], expected: object) -> None:
    await until(lambda: look() == expected)
