"""Clients of the cluster: they find leaders by Metadata, over their own connections, and retry like real clients."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from client.address import Address
from client.errors import PeerError, PeerUnavailable
from client.pool import Peer
from client.settings import Settings
from protocol.backoff import Backoff
from protocol.errors import ErrorCode, ProtocolError, error_code
from protocol.messages.fetch import FetchResponse, PartitionData
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.batch import iter_batches
from protocol.records.building import build
from protocol.records.record import Record, read_records
from protocol.types import TopicPartition
from tests.broker.asking import fetch_request
from tests.simulation.cluster.history import Breach
from tests.simulation.cluster.processes import Process
from tests.simulation.cluster.surroundings import Surroundings
from tests.simulation.virtual_time import virtual_clock

R = TypeVar("R")

REQUEST_MS = 700
SETTINGS = Settings(connect_timeout_ms=300, backoff=Backoff(initial_ms=20, max_ms=100))
PAUSE_S = 0.15
FETCH_WAIT_MS = 200
BY_NAME = 12
"""The newest version of Produce and of Fetch that names topics."""
LATEST = -1
NO_LEADER = -1


class NoAnswer(Exception):
    """A request without an answer: its outcome is unknown."""


class Sent(NamedTuple):
    """The answer to a batch; a negative offset means no offset."""

    code: ErrorCode
    base_offset: int = -1


class Client:
    """A process with connections to all brokers."""

    def __init__(self, world: Surroundings, hosts: Mapping[int, str], name: str) -> None:
        """`hosts` are the hosts of all brokers, by id."""
        self.world = world
        self.name = name
        self.history = world.history
        self.process = Process(name, world.loop)
        self.node_ids = [*hosts]
        self._peers = {
            node_id: Peer(Address(host, 9092), SETTINGS, virtual_clock(), world.dice.random)
            for node_id, host in hosts.items()
        }
        self._leaders: dict[TopicPartition, tuple[int, int]] = {}
        """The leader and its epoch, by partition."""
        self._epochs: dict[TopicPartition, int] = {}
        """The latest known leader epochs. Metadata with an older epoch is ignored."""

    async def pause(self) -> None:
        await asyncio.sleep(self.world.dice.expovariate(1 / PAUSE_S))

    async def ask(self, node_id: int, request: object, response: type[R], max_version: int = 1 << 15) -> R:
        """Returns the answer to a request. Raises NoAnswer."""
        try:
            return await self._peers[node_id].send(
                request, response, timeout_ms=REQUEST_MS, max_version=max_version, max_dials=1
            )
        except (PeerError, ProtocolError) as error:
            if isinstance(error, ProtocolError):
                self.history.breach(Breach.FAULT, f"{self.name}: {error}")
            raise NoAnswer(isinstance(error, PeerUnavailable)) from error

    async def coordinator(self, group: str) -> int:
        """Returns the group's coordinator. Raises NoAnswer."""
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        node_id = self.world.dice.choice(self.node_ids)
        (answer,) = (await self.ask(node_id, request, FindCoordinatorResponse)).coordinators
        if answer.error_code:
            raise NoAnswer
        return answer.node_id

    async def leader(self, partition: TopicPartition) -> int:
        """Returns the leader according to a broker. Raises NoAnswer."""
        return (await self.leader_and_epoch(partition))[0]

    async def leader_and_epoch(self, partition: TopicPartition) -> tuple[int, int]:
        """Returns the leader and its epoch according to a broker. Raises NoAnswer."""
        remembered = self._leaders.get(partition)
        if remembered is not None:
            return remembered
        node_id = self.world.dice.choice(self.node_ids)
        request = MetadataRequest(topics=[MetadataRequestTopic(name=partition.topic)], allow_auto_topic_creation=False)
        answer = await self.ask(node_id, request, MetadataResponse)
        for topic in answer.topics:
            for one in topic.partitions:
                name = TopicPartition(partition.topic, one.partition_index)
                if one.leader_id != NO_LEADER and one.leader_epoch >= self._epochs.get(name, -1):
                    self._epochs[name] = one.leader_epoch
                    self._leaders[name] = one.leader_id, one.leader_epoch
        leader = self._leaders.get(partition)
        if leader is None:
            await self.pause()
            raise NoAnswer
        return leader

    def forget_leader(self, partition: TopicPartition) -> None:
        self._leaders.pop(partition, None)

    def forget_topic(self, topic: str) -> None:
        """Forgets the topic's leaders and epochs, because the topic was recreated."""
        for name in [name for name in self._epochs if name.topic == topic]:
            del self._epochs[name]
            self._leaders.pop(name, None)

    # Records

    async def send(self, partition: TopicPartition, records: bytes, acks: int) -> Sent:
        """Sends a batch once. Raises NoAnswer."""
        data = [PartitionProduceData(index=partition.partition, records=records)]
        topics = [TopicProduceData(name=partition.topic, partition_data=data)]
        request = ProduceRequest(acks=acks, timeout_ms=REQUEST_MS - 100, topic_data=topics)
        leader = await self.leader(partition)
        try:
            answer = await self.ask(leader, request, ProduceResponse, BY_NAME)
        except NoAnswer:
            self.forget_leader(partition)
            raise
        data_of: PartitionProduceResponse = answer.responses[0].partition_responses[0]
        code = error_code(data_of.error_code)
        if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            self.forget_leader(partition)
        return Sent(code, data_of.base_offset)

    async def fetch(self, partition: TopicPartition, offset: int, *, committed: bool) -> PartitionData:
        """Returns a fetch's answer. Raises NoAnswer."""
        leader, epoch = await self.leader_and_epoch(partition)
        request = fetch_request(
            partition.topic, offset, partitions=(partition.partition,), max_wait_ms=FETCH_WAIT_MS, max_bytes=2_000,
            current_leader_epoch=epoch,
        )  # fmt: skip
        request.isolation_level = int(committed)
        try:
            answer = await self.ask(leader, request, FetchResponse, BY_NAME)
        except NoAnswer:
            self.forget_leader(partition)
            raise
        data: PartitionData = answer.responses[0].partitions[0]
        if data.error_code:
            self.forget_leader(partition)
        return data

    async def end_offset(self, partition: TopicPartition) -> int | None:
        """Returns the offset after the last committed record; None if the leader doesn't know it. Raises NoAnswer."""
        leader, epoch = await self.leader_and_epoch(partition)
        named = [
            ListOffsetsPartition(partition_index=partition.partition, current_leader_epoch=epoch, timestamp=LATEST)
        ]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=partition.topic, partitions=named)])
        answer = await self.ask(leader, request, ListOffsetsResponse, 9)
        data = answer.topics[0].partitions[0]
        if data.error_code:
            self.forget_leader(partition)
            return None
        return data.offset


def values_of(name: str, first: int, count: int) -> list[bytes]:
    return [f"{name}:{number}".encode() for number in range(first, first + count)]


async def produce(client: Client, partitions: Sequence[TopicPartition], acks: int) -> None:
    """Produces without sequence numbers: a batch without an answer is not sent again."""
    world, number = client.world, 0
    while not world.is_calm:
        partition = partitions[0] if len(partitions) == 1 else world.dice.choice(partitions)
        values = values_of(client.name, number, world.dice.randint(1, 3))
        number += len(values)
        records = bytes(build([Record(timestamp=virtual_clock().now_ms(), value=value) for value in values]))
        try:
            sent = await client.send(partition, records, acks)
        except NoAnswer:
            client.history.counts["unanswered"] += 1
        else:
            client.history.note(client.name, number, sent.code.name, sent.base_offset)
            client.history.counts[sent.code.name] += 1
            if sent.code is ErrorCode.NONE:
                client.history.acked(partition, sent.base_offset, values, for_all=acks == -1)
        await client.pause()


async def consume(client: Client, partition: TopicPartition, *, committed: bool) -> None:
    """Consumes from the start of the partition; offsets must never go back."""
    history, offset = client.history, 0
    while True:
        try:
            data = await client.fetch(partition, offset, committed=committed)
        except NoAnswer:
            await client.pause()
            continue
        code = error_code(data.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE and offset < history.deleted.get(partition, 0):
            offset = history.deleted[partition]
            continue
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            history.breach(Breach.BACK, f"{client.name}, {partition}: offset {offset} is out of range")
            return
        if code is not ErrorCode.NONE:
            history.counts[f"fetch {code.name}"] += 1
            await client.pause()
            continue
        if data.records:
            offset = _read(client, partition, data, offset)
            history.note(client.name, offset)
        await asyncio.sleep(0.01)


def _read(client: Client, partition: TopicPartition, data: PartitionData, offset: int) -> int:
    records = memoryview(data.records or b"")
    for position, header in iter_batches(records):
        for record in read_records(records, position, header):
            if record.offset >= offset and not header.is_control:
                client.history.saw(partition, record.offset, record.value or b"")
        offset = max(offset, header.next_offset)
    return offset


async def list_ends(client: Client, partition: TopicPartition) -> None:
    """Lists the end offset repeatedly; it must never go back (KIP-207)."""
    last = 0
    while True:
        try:
            end = await client.end_offset(partition)
        except NoAnswer:
            client.forget_leader(partition)
            end = None
        if end is not None:
            client.history.counts["ends"] += 1
            if end < last:
                client.history.breach(Breach.BACK, f"{partition}: the end was {last}, and is {end}")
            last = end
        await client.pause()


async def produce_idempotently(client: Client, partition: TopicPartition) -> None:
    """Produces idempotently: sends a batch again until its offset is known."""
    world, history, number = client.world, client.history, 0
    producer = await _producer_id(client)
    sent_values = history.idempotent[partition].setdefault(f"{client.name}:".encode(), [])
    sequence = 0
    while not world.is_calm:
        values = values_of(client.name, number, world.dice.randint(1, 3))
        number += len(values)
        sent_values += values
        made = [Record(timestamp=virtual_clock().now_ms(), value=value) for value in values]
        records = bytes(build(made, producer_id=producer[0], producer_epoch=producer[1], base_sequence=sequence))
        sequence += len(values)
        while True:
            try:
                sent = await client.send(partition, records, -1)
            except NoAnswer:
                await client.pause()
                continue
            history.note(client.name, number, sent.code.name, sent.base_offset)
            history.counts[f"idempotent {sent.code.name}"] += 1
            if sent.code is ErrorCode.NONE:
                history.acked(partition, sent.base_offset, values, for_all=True)
                break
            if sent.code in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID):
                history.breach(Breach.TWICE, f"{client.name}, {partition}: {sent.code.name}")
                return
            await client.pause()
        await client.pause()


async def _producer_id(client: Client) -> tuple[int, int]:
    """Returns a producer id and epoch from any broker."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    while True:
        node_id = client.world.dice.choice(client.node_ids)
        try:
            answer = await client.ask(node_id, request, InitProducerIdResponse)
        except NoAnswer:
            await client.pause()
            continue
        if not answer.error_code:
            return answer.producer_id, answer.producer_epoch
        await client.pause()
