"""Reads partitions from their leaders, starting at given offsets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from client.errors import RequestTimedOut
from commands.client.cluster_client import PAUSE, ClusterClient, draw
from commands.errors import BrokerUnreachable, raise_if
from commands.records.positions import READ_COMMITTED, READ_UNCOMMITTED, bounds
from protocol.errors import RETRIABLE, ErrorCode, error_code
from protocol.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from protocol.records.batch import BatchHeader, TimestampType, iter_batches, magic_at
from protocol.records.control import ControlType
from protocol.records.message_set import read_messages
from protocol.records.record import Record, read_records
from protocol.types import NO_UUID, Buffer, TopicPartition
from protocol.versions import ANY_VERSION

NAMES_VERSION: Final = 12
"""The last version of Fetch with topic names, for a cluster whose topics have no ids. With an id, a broker refuses to
return records of a topic that was created again."""

MAX_WAIT_MS: Final = 500
MAX_BYTES: Final = 8 * 1024 * 1024
PARTITION_MAX_BYTES: Final = 1024 * 1024
"""fetch.max.wait.ms and max.partition.fetch.bytes of Kafka's consumers. MAX_BYTES is less than theirs, because the
whole answer is in memory at once."""

ABORT_KEY_BYTES: Final = 4


class FetchedRecords(NamedTuple):
    """The records of a partition in one answer, and the offset to read next."""

    place: TopicPartition
    records: list[tuple[Record, TimestampType]]
    next_offset: int


class PartitionReader:
    """Reads a set of partitions, each from its own offset."""

    def __init__(
        self,
        cluster: ClusterClient,
        *,
        isolation: int = READ_UNCOMMITTED,
        observe: Callable[[TopicPartition, Buffer], None] | None = None,
        max_bytes: int = MAX_BYTES,
        max_wait_ms: int = MAX_WAIT_MS,
    ) -> None:
        """`observe` is called with the batches of each answer; an answer has at most `max_bytes`, or one batch. A
        broker without records answers after `max_wait_ms`; until then it answers no other request of the connection."""
        self.positions: dict[TopicPartition, int] = {}
        """The next offset of each partition. Removing a partition stops reading it."""
        self.leaders: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}
        """The end of each partition in its last answer: the high watermark, or with READ_COMMITTED the last stable
        offset."""
        self.topic_ids: dict[str, bytes] = {}
        """The id of each topic when its leaders were looked up; another one than before if it was created again."""
        self.resets: list[TopicPartition] = []
        """Partitions whose position was out of range, and which continued at their start."""
        self._cluster = cluster
        self._isolation = isolation
        self._observe = observe
        self._max_bytes = max_bytes
        self._max_wait_ms = max_wait_ms
        self._under_way: dict[int, asyncio.Task[list[FetchedRecords]]] = {}
        self._failures = 0

    async def poll(self) -> AsyncGenerator[FetchedRecords, None]:
        """Yields the records of the leaders that answer first, then returns. Without records it returns after
        `max_wait_ms` at the latest, or after MAX_WAIT_MS if there is no leader to ask. Raises the error of a leader
        after the records of the others."""
        await self._find_leaders()
        for leader in {self.leaders.get(place, -1) for place in self.positions} - self._under_way.keys():
            self._under_way[leader] = asyncio.ensure_future(self._fetch(leader))
        if not self._under_way:
            await self._cluster.pause(MAX_WAIT_MS)
            return
        done, _ = await asyncio.wait(self._under_way.values(), return_when=asyncio.FIRST_COMPLETED)
        self._under_way = {leader: task for leader, task in self._under_way.items() if task not in done}
        for task in sorted(done, key=lambda task: task.exception() is not None):
            for fetched in task.result():
                if self.positions.get(fetched.place) is not None:
                    self.positions[fetched.place] = fetched.next_offset
                    yield fetched

    async def close(self) -> None:
        """Cancels the fetches in flight."""
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        self._under_way.clear()

    async def _find_leaders(self) -> None:
        """Looks up the leaders of partitions whose leader is unknown; -1 means that the partition has no leader."""
        missing = {place.topic for place in self.positions if self.leaders.get(place, -1) < 0}
        if not missing:
            return
        if self._failures:
            await self._cluster.pause(PAUSE.delay_ms(self._failures, draw()))
        for topic in await self._cluster.topics(sorted(missing)):
            self.topic_ids[topic.name or ""] = topic.topic_id
            for partition in topic.partitions:
                self.leaders[TopicPartition(topic.name or "", partition.partition_index)] = partition.leader_id
        self._failures += 1

    async def _fetch(self, leader: int) -> list[FetchedRecords]:
        positions = {place: at for place, at in self.positions.items() if self.leaders.get(place) == leader}
        if leader < 0:
            return []
        ids = {place.topic: self.topic_ids.get(place.topic, NO_UUID) for place in positions}
        names = {topic_id: name for name, topic_id in ids.items()}
        request = fetch_request(positions, ids, self._isolation, self._max_bytes, self._max_wait_ms)
        max_version = NAMES_VERSION if NO_UUID in names else ANY_VERSION
        try:
            answer = await self._cluster.node(leader, request, FetchResponse, max_version=max_version)
        except (BrokerUnreachable, RequestTimedOut):
            self._forget(positions)
            return []
        raise_if(f"broker {leader}", answer.error_code)
        fetched = []
        for topic in answer.responses:
            for part in topic.partitions:
                place = TopicPartition(topic.topic or names.get(topic.topic_id, ""), part.partition_index)
                if place in positions and await self._is_sound(place, part):
                    if self._observe is not None:
                        self._observe(place, part.records or b"")
                    self.ends[place] = end_offset(part, self._isolation)
                    fetched.append(read_answer(place, part, positions[place], self._isolation))
                    self._failures = 0
        return fetched

    async def _is_sound(self, place: TopicPartition, part: PartitionData) -> bool:
        """True if the answer may have records. Handles retriable errors and positions out of range. Raises
        CommandError."""
        code = error_code(part.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            limits, at = await bounds(self._cluster, [place]), self.positions.get(place)
            is_found = at is not None and place not in limits.errors
            if is_found and at not in range(limits.starts[place], limits.ends[place] + 1):
                self.positions[place] = limits.starts[place]
                self.resets.append(place)
            self._forget([place])  # perhaps the topic was created again, which its id shows
            return False
        if code in RETRIABLE:
            self._forget([place])
            return False
        raise_if(str(place), part.error_code)
        return True

    def _forget(self, places: Mapping[TopicPartition, int] | Sequence[TopicPartition]) -> None:
        for place in places:
            self.leaders.pop(place, None)
        self._failures = max(self._failures, 1)


def fetch_request(
    positions: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, bytes],
    isolation: int,
    max_bytes: int,
    max_wait_ms: int,
) -> FetchRequest:
    """Returns a Fetch of the partitions, without a session."""
    topics: dict[str, list[FetchPartition]] = {}
    for place, offset in positions.items():
        entry = FetchPartition(
            partition=place.partition, fetch_offset=offset, partition_max_bytes=min(PARTITION_MAX_BYTES, max_bytes)
        )
        topics.setdefault(place.topic, []).append(entry)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation,
        topics=[
            FetchTopic(topic=name, topic_id=topic_ids[name], partitions=entries) for name, entries in topics.items()
        ],
    )


def end_offset(part: PartitionData, isolation: int) -> int:
    """Returns the offset after the last record that a reader may see. Brokers before version 4 have no stable
    offset."""
    is_stable = isolation == READ_COMMITTED and part.last_stable_offset >= 0
    return part.last_stable_offset if is_stable else part.high_watermark


def read_answer(place: TopicPartition, part: PartitionData, position: int, isolation: int) -> FetchedRecords:
    """Returns the records of an answer from `position` on. With READ_COMMITTED it skips the records of aborted
    transactions."""
    buffer = part.records or b""
    if len(buffer) and magic_at(buffer) < 2:
        records = [record for record in read_messages(buffer) if record.offset >= position]
        after = records[-1].offset + 1 if records else position
        return FetchedRecords(place, [(record, TimestampType.CREATE_TIME) for record in records], after)
    aborted = Aborted(part.aborted_transactions or () if isolation == READ_COMMITTED else ())
    next_offset, visible = position, []
    for at, header in iter_batches(buffer):
        next_offset = max(next_offset, header.next_offset)
        if not aborted.covers(buffer, at, header):
            kind = header.timestamp_type
            visible += [(record, kind) for record in read_records(buffer, at, header) if record.offset >= position]
    return FetchedRecords(place, visible, next_offset)


class Aborted:
    """The aborted transactions of an answer, while its batches are read in order
    (org.apache.kafka.clients.consumer.internals.CompletedFetch)."""

    def __init__(self, transactions: Sequence[AbortedTransaction]) -> None:
        self._due = sorted(transactions, key=lambda transaction: transaction.first_offset, reverse=True)
        self._producers: set[int] = set()

    def covers(self, buffer: Buffer, at: int, header: BatchHeader) -> bool:
        """True if the batch must not be returned: it is a marker, or part of an aborted transaction."""
        while self._due and self._due[-1].first_offset <= header.last_offset:
            self._producers.add(self._due.pop().producer_id)
        if header.is_control:
            for record in _keys(buffer, at, header):
                if record[2:ABORT_KEY_BYTES] == int(ControlType.ABORT).to_bytes(2, "big"):
                    self._producers.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._producers


def _keys(buffer: Buffer, at: int, header: BatchHeader) -> Iterator[bytes]:
    return (record.key or b"" for record in read_records(buffer, at, header))
