"""A transactional client of a broker in the test's process: one request per method, in any version."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from coordinator.transaction.transaction import Producer
from protocol.errors import ErrorCode, error_code
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.offset_fetch import (
    OffsetFetchResponse,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
)
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.records.batch import iter_batches
from protocol.records.building import build
from protocol.records.record import Record, read_records
from tests.broker.inprocess import InProcess
from tests.group_requests import offset_fetch, txn_offset_commit

R = TypeVar("R")

ID, GROUP, TOPIC = "transfers", "readers", "t"
TIMEOUT_MS = 60_000
PAUSE_S = 0.01
NO_PRODUCER = Producer(-1, -1)
NOT_YET = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
OPTIONS = {
    "odradek.profile": "dev",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
}


class Answer(NamedTuple):
    """An error code, and the producer in the same answer."""

    code: ErrorCode
    producer: Producer = NO_PRODUCER


def broker_on(directory: Path, **options: str) -> InProcess:
    """Yields a broker with few partitions of internal topics; options by attribute names."""
    return InProcess(directory, {**OPTIONS, **{key.replace("_", "."): value for key, value in options.items()}})


class Asks(Protocol):
    """A connection to a broker in this or another process."""

    async def ask(self, request: object, version: int, response: type[R]) -> R: ...


class TransactionalClient:
    """A connection, for a topic with two partitions."""

    def __init__(self, client: Asks, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self.client = client
        self.now_ms = now_ms

    async def find(self, key: str, key_type: int) -> None:
        """Returns once there is a coordinator; the first request creates the coordinator's topic."""
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        while (await self.client.ask(request, 4, FindCoordinatorResponse)).coordinators[0].error_code:  # noqa: ASYNC110
            await asyncio.sleep(PAUSE_S)
        await asyncio.sleep(0)

    async def init(
        self, expected: Producer = NO_PRODUCER, *, name: str | None = ID, timeout_ms: int = TIMEOUT_MS, version: int = 5
    ) -> Answer:
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected.producer_id,
            producer_epoch=expected.epoch,
        )
        response = await self.client.ask(request, version, InitProducerIdResponse)
        return Answer(error_code(response.error_code), Producer(response.producer_id, response.producer_epoch))

    async def producer(self, name: str = ID) -> Producer:
        """Returns a new producer of the id, once the last producer's transaction has ended."""
        while (answer := await self.init(name=name)).code in NOT_YET:  # noqa: ASYNC110
            await asyncio.sleep(0 if answer.code is ErrorCode.CONCURRENT_TRANSACTIONS else PAUSE_S)
        assert answer.code is ErrorCode.NONE
        return answer.producer

    async def add(
        self, producer: Producer, *partitions: int, topic: str = TOPIC, name: str = ID, version: int = 3
    ) -> list[ErrorCode]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        response = await self.client.ask(request, version, AddPartitionsToTxnResponse)
        topics = response.results_by_topic_v3_and_below
        return [
            error_code(partition.partition_error_code) for topic in topics for partition in topic.results_by_partition
        ]

    async def add_batched(
        self, producer: Producer, *partitions: int, verify: bool, version: int = 5
    ) -> list[ErrorCode]:
        topics = [AddPartitionsToTxnTopic(name=TOPIC, partitions=list(partitions))]
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=ID,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify,
            topics=topics,
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        response = await self.client.ask(request, version, AddPartitionsToTxnResponse)
        (result,) = response.results_by_transaction
        return [
            error_code(partition.partition_error_code) for partition in result.topic_results[0].results_by_partition
        ]

    async def add_offsets(self, producer: Producer, version: int = 4) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id=ID, producer_id=producer.producer_id, producer_epoch=producer.epoch, group_id=GROUP
        )
        return error_code((await self.client.ask(request, version, AddOffsetsToTxnResponse)).error_code)

    async def write(
        self,
        producer: Producer,
        *values: str,
        partition: int = 0,
        sequence: int = 0,
        name: str | None = ID,
        version: int = 12,
        acks: int = -1,
    ) -> ErrorCode:
        """Produces one transactional batch."""
        records = [Record(0, self.now_ms(), b"key", value.encode()) for value in values]
        batch = build(
            records,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=partition, records=batch)])
        request = ProduceRequest(transactional_id=name, acks=acks, timeout_ms=1000, topic_data=[data])
        response = await self.client.ask(request, version, ProduceResponse)
        return error_code(response.responses[0].partition_responses[0].error_code)

    async def commit_offset(self, producer: Producer, offset: int, version: int = 5) -> ErrorCode:
        request = txn_offset_commit(GROUP, ID, producer, {TOPIC: {0: offset}})
        response = await self.client.ask(request, version, TxnOffsetCommitResponse)
        return error_code(response.topics[0].partitions[0].error_code)

    async def committed_offset(self, *, stable: bool = False) -> int | ErrorCode:
        response = await self.client.ask(offset_fetch(GROUP, {TOPIC: [0]}, stable=stable), 8, OffsetFetchResponse)
        fetched = response.groups[0].topics[0].partitions[0]
        return error_code(fetched.error_code) if fetched.error_code else fetched.committed_offset

    async def end(self, producer: Producer, *, committed: bool = True, name: str = ID, version: int = 5) -> Answer:
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        response = await self.client.ask(request, version, EndTxnResponse)
        return Answer(error_code(response.error_code), Producer(response.producer_id, response.producer_epoch))

    async def ended(self, producer: Producer, *, committed: bool = True, version: int = 5) -> Producer:
        """Ends a transaction and waits for all of its markers; returns the producer to continue with."""
        code, goes_on_with = await self.end(producer, committed=committed, version=version)
        assert code is ErrorCode.NONE
        await self.settled()
        return producer if version < 5 else goes_on_with

    async def ended_as(self, name: str, producer: Producer) -> Producer:
        """Ends and commits a transaction of another transactional id."""
        code, goes_on_with = await self.end(producer, name=name)
        assert code is ErrorCode.NONE
        await self.settled(name)
        return goes_on_with

    async def settled(self, name: str = ID) -> str:
        """Waits until the id's transaction is no longer being ended; returns its state."""
        while (state := (await self.describe(name)).transaction_state).startswith("Prepare"):  # noqa: ASYNC110
            await asyncio.sleep(0)
        return state

    async def until(self, state: str) -> None:
        while (await self.describe()).transaction_state != state:  # noqa: ASYNC110
            await asyncio.sleep(0)

    async def describe(self, name: str = ID) -> TransactionState:
        request = DescribeTransactionsRequest(transactional_ids=[name])
        return (await self.client.ask(request, 0, DescribeTransactionsResponse)).transaction_states[0]

    async def mark(
        self, producer: Producer, *, committed: bool = False, topic: str = TOPIC, partition: int = 0,
        coordinator_epoch: int = 0, transaction_version: int = 0, version: int = 2,
    ) -> ErrorCode:  # fmt: skip
        """Sends WriteTxnMarkers, as another broker or an administrator does."""
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transaction_result=committed,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
        response = await self.client.ask(WriteTxnMarkersRequest(markers=[marker]), version, WriteTxnMarkersResponse)
        return error_code(response.markers[0].topics[0].partitions[0].error_code)

    async def fetch(
        self, partition: int = 0, *, offset: int = 0, committed: bool = True, max_wait_ms: int = 0, version: int = 12
    ) -> PartitionData:
        topic = FetchTopic(
            topic=TOPIC,
            partitions=[FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)],
        )
        request = FetchRequest(
            max_wait_ms=max_wait_ms, min_bytes=1, isolation_level=int(committed), session_id=0, session_epoch=-1,
            topics=[topic],
        )  # fmt: skip
        return (await self.client.ask(request, version, FetchResponse)).responses[0].partitions[0]

    async def read(self, partition: int = 0, *, committed: bool = True) -> list[str]:
        """Returns the records that a consumer returns: no control records and, if it is read-committed, none of aborted
        transactions."""
        data = await self.fetch(partition, committed=committed)
        return values_of(data)


class Transacting(TransactionalClient):
    """A client of a broker in this process, whose internals can be reached."""

    def __init__(self, broker: InProcess) -> None:
        super().__init__(broker.client())
        self.broker = broker

    async def start(self) -> None:
        """Waits until the coordinators' topics exist and are loaded."""
        if self.broker.server.broker.image.topic(TOPIC) is None:
            await self.broker.create_topic(TOPIC, partitions=2)
        await self.find(ID, 1)
        await self.find(GROUP, 0)


def values_of(data: PartitionData) -> list[str]:
    """Returns a partition's records, read by the rules of KIP-98 for consumers."""
    return [value for _, value in records_of(data)[0]]


def records_of(data: PartitionData, position: int = 0) -> tuple[list[tuple[int, str]], int]:
    """Returns (offset, value) of each record from `position` on that a consumer returns, and its next position."""
    aborted = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    leaving_out: set[int] = set()
    handed_out: list[tuple[int, str]] = []
    records = data.records or b""
    for at, header in iter_batches(records):
        while aborted and aborted[0][0] <= header.last_offset:
            leaving_out.add(aborted.pop(0)[1])
        if header.is_control:
            leaving_out.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in leaving_out):
            handed_out += [
                (record.offset, (record.value or b"").decode())
                for record in read_records(records, at, header)
                if record.offset >= position
            ]
        position = max(position, header.next_offset)
    return handed_out, position
