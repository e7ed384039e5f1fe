"""A producer: sends batches to the partitions' leaders, and again until each is written exactly once. It can use a
transaction.

It has one request in flight for each leader, so the records keep the order of the input after every failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from client.errors import RequestTimedOut
from commands.client.cluster_client import PAUSE, ClusterClient, draw
from commands.errors import BrokerUnreachable, CommandError, raise_if, refusal
from commands.records.input import InputRecord, InputValues
from commands.records.partitioning import partition_of_key
from commands.records.transaction import NO_PRODUCER, ProducerTransaction, idempotent_identity
from protocol.errors import RETRIABLE, ErrorCode, error_code
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.building import build, build_values
from protocol.records.compression import Compression
from protocol.records.record import Record, encode_headers
from protocol.types import TopicPartition

BATCH_BYTES: Final = 512 * 1024
"""Size at which a batch is full: half of the brokers' default limit (message.max.bytes). Further records start another
batch."""

NAMES_VERSION: Final = 11
"""The last version of Produce with topic names. The producer adds partitions to its transaction itself."""

MAX_SEQUENCE: Final = 0x7FFFFFFF
RECORD_OVERHEAD: Final = 32
"""Upper bound of a record's bytes besides key and value."""
VALUE_OVERHEAD: Final = 24
"""The same for a record with the batch's timestamp and without headers."""


Batch: TypeAlias = "list[InputRecord] | InputValues"
"""The records of one batch."""


class ProduceOptions(NamedTuple):
    """The options of a producer."""

    acks: int = -1
    codec: Compression = Compression.NONE
    idempotent: bool = True
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000


class Written(NamedTuple):
    """The number of records written to a partition, and their first and last offsets; -1 with acks=0."""

    records: int
    first: int
    last: int


class RecordProducer:
    """Sends records; `written` has the result of each partition."""

    def __init__(self, cluster: ClusterClient, options: ProduceOptions) -> None:
        self.written: dict[TopicPartition, Written] = {}
        self._cluster = cluster
        self._options = options
        self._identity = NO_PRODUCER
        self._transaction: ProducerTransaction | None = None
        self._sequences: dict[TopicPartition, int] = {}
        self._counts: dict[str, int] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._turn = int(draw() * 1024)
        self._retried: dict[TopicPartition, CommandError] = {}
        """The reason why a batch was sent again, by partition."""

    async def begin(self) -> None:
        """Gets a producer id, and begins a transaction."""
        options = self._options
        if options.transactional_id is not None:
            self._transaction = ProducerTransaction(self._cluster, options.transactional_id)
            self._identity = await self._transaction.begin(options.transaction_timeout_ms)
        elif options.idempotent:
            self._identity = await idempotent_identity(self._cluster)

    async def end(self, *, commit: bool) -> None:
        """Ends the transaction, if there is one."""
        if self._transaction is not None:
            await self._transaction.end(commit=commit)

    async def send(self, topic: str, records: Sequence[InputRecord] | InputValues) -> None:
        """Sends records in order, and returns when all are written. Raises CommandError if a record is rejected."""
        if topic not in self._counts:
            await self._find(topic)
        waiting: dict[TopicPartition, list[Batch]] = {}
        if isinstance(records, InputValues):
            waiting[self._place(topic, records)] = [*batches_of_values(records)]
        else:
            by_partition: dict[TopicPartition, list[InputRecord]] = {}
            for record in records:
                by_partition.setdefault(self._place(topic, record), []).append(record)
            waiting |= {place: [*batches(listed)] for place, listed in by_partition.items()}
        self._turn += 1
        if self._transaction is not None:
            await self._transaction.add(waiting)
        while waiting:
            await self._send_round({place: queue.pop(0) for place, queue in waiting.items()})
            waiting = {place: queue for place, queue in waiting.items() if queue}

    def _place(self, topic: str, record: InputRecord | InputValues) -> TopicPartition:
        count = self._counts[topic]
        if record.partition is not None:
            if record.partition >= count:
                raise CommandError(f"partition {record.partition}: {topic} has partitions 0 to {count - 1}")
            return TopicPartition(topic, record.partition)
        if record.key is not None:
            return TopicPartition(topic, partition_of_key(record.key, count))
        return TopicPartition(topic, self._turn % count)

    async def _find(self, topic: str) -> None:
        described = await self._cluster.topic(topic)
        self._counts[topic] = len(described.partitions)
        for partition in described.partitions:
            self._leaders[TopicPartition(topic, partition.partition_index)] = partition.leader_id

    async def _send_round(self, round_: dict[TopicPartition, Batch]) -> None:
        """Sends one batch to each partition, repeatedly until all are written."""
        now_ms = self._cluster.clock.now_ms()
        built = {place: self._batch(place, records, now_ms) for place, records in round_.items()}
        deadline_ms = self._cluster.clock.monotonic_ms() + self._cluster.timeout_ms
        failures = 0
        while built:
            by_leader: dict[int, dict[TopicPartition, bytearray]] = {}
            for place, batch in built.items():
                by_leader.setdefault(self._leaders[place], {})[place] = batch
            results = await asyncio.gather(*(self._send_to(leader, part) for leader, part in by_leader.items()))
            for place, result in ((place, result) for part in results for place, result in part.items()):
                if self._is_written(place, result, _count(round_[place])):
                    del built[place]
            if built:
                if self._cluster.clock.monotonic_ms() > deadline_ms:
                    place = next(iter(built))
                    raise self._retried.get(place) or refusal(str(place), ErrorCode.REQUEST_TIMED_OUT)
                failures += 1
                await self._cluster.pause(PAUSE.delay_ms(failures, draw()))
                for topic in {place.topic for place in built}:
                    await self._find(topic)

    def _batch(self, place: TopicPartition, records: Batch, now_ms: int) -> bytearray:
        sequence = self._sequences.get(place, 0) if self._identity.producer_id >= 0 else -1
        if sequence >= 0:
            self._sequences[place] = (sequence + _count(records)) & MAX_SEQUENCE
        if isinstance(records, InputValues):
            return build_values(
                records.values,
                key=records.key,
                headers=records.headers,
                timestamp=now_ms if records.timestamp is None else records.timestamp,
                producer_id=self._identity.producer_id,
                producer_epoch=self._identity.epoch,
                base_sequence=sequence,
                transactional=self._transaction is not None,
                compression=self._options.codec,
            )
        return build(
            [
                Record(
                    0,
                    now_ms if record.timestamp is None else record.timestamp,
                    record.key,
                    record.value,
                    record.headers,
                )
                for record in records
            ],
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            base_sequence=sequence,
            transactional=self._transaction is not None,
            compression=self._options.codec,
        )

    async def _send_to(
        self, leader: int, batch_of: dict[TopicPartition, bytearray]
    ) -> dict[TopicPartition, PartitionProduceResponse | None]:
        """Sends a leader its batches. Returns None for a batch without an answer that can be sent again."""
        if leader < 0:
            return dict.fromkeys(batch_of)
        topics: dict[str, list[PartitionProduceData]] = {}
        for (topic, index), batch in batch_of.items():
            topics.setdefault(topic, []).append(PartitionProduceData(index=index, records=batch))
        request = ProduceRequest(
            transactional_id=self._options.transactional_id,
            acks=self._options.acks,
            timeout_ms=self._cluster.timeout_ms,
            topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )
        if self._options.acks == 0:
            await self._cluster.tell(leader, request, max_version=NAMES_VERSION)
            return {
                place: PartitionProduceResponse(index=place.partition, error_code=0, base_offset=-1)
                for place in batch_of
            }
        try:
            answer = await self._cluster.node(leader, request, ProduceResponse, max_version=NAMES_VERSION)
        except (BrokerUnreachable, RequestTimedOut):
            if self._identity is NO_PRODUCER:
                raise  # it may have been written
            return dict.fromkeys(batch_of)
        return {
            TopicPartition(entry.name, result.index): result
            for entry in answer.responses
            for result in entry.partition_responses
        }

    def _is_written(self, place: TopicPartition, result: PartitionProduceResponse | None, count: int) -> bool:
        """Records where a batch was written. Returns False if it must be sent again. Raises CommandError if it was
        rejected."""
        self._retried.pop(place, None)
        if result is None:
            return False
        code = error_code(result.error_code)
        if code in RETRIABLE and code is not ErrorCode.CORRUPT_MESSAGE:
            self._retried[place] = refusal(str(place), code, result.error_message)
            return False
        if code is not ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            reasons = [error.batch_index_error_message for error in result.record_errors]
            raise_if(str(place), code, "; ".join(dict.fromkeys(filter(None, reasons))) or result.error_message)
        before = self.written.get(place)
        last = result.base_offset + count - 1 if result.base_offset >= 0 else -1
        first = before.first if before else result.base_offset
        self.written[place] = Written((before.records if before else 0) + count, first, last)
        return True


def _count(batch: Batch) -> int:
    return len(batch.values if isinstance(batch, InputValues) else batch)


def batches_of_values(records: InputValues) -> list[InputValues]:
    """Divides records like `batches`."""
    per_record = VALUE_OVERHEAD + len(records.key or b"") + len(encode_headers(records.headers))
    divided: list[InputValues] = []
    start = size = 0
    for at, value in enumerate(records.values):
        own = per_record + len(value)
        if size + own > BATCH_BYTES and at > start:
            divided.append(records._replace(values=records.values[start:at]))
            start, size = at, 0
        size += own
    return [*divided, records._replace(values=records.values[start:])]


def batches(records: Sequence[InputRecord]) -> list[list[InputRecord]]:
    """Divides records into batches of at most about BATCH_BYTES; a larger record is alone in its batch."""
    divided: list[list[InputRecord]] = []
    size = BATCH_BYTES
    for record in records:
        own = RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
        if size + own > BATCH_BYTES:
            divided.append([])
            size = 0
        divided[-1].append(record)
        size += own
    return divided
