"""Requests of transactional producers, one method each, for scripts that run against two brokers."""

from __future__ import annotations

import time
from collections.abc import Iterable

from coordinator.transaction.transaction import Producer
from protocol.errors import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse, TopicRequest
from protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
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
from protocol.records.building import build
from tests.group_requests import offset_fetch, txn_offset_commit
from tests.interop.conformance.peers import Exchange, Peer, Plain
from tests.interop.conformance.records import records

NO_PRODUCER = Producer(-1, -1)
TRANSACTION, GROUP = 1, 0
AGAIN = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


class Transacting:
    """A transactional id, its group, and a topic of two partitions, which is created unless it is named."""

    def __init__(self, peer: Peer, name: str, topic: str | None = None) -> None:
        self.peer = peer
        self.name = name
        self.group = f"{topic or name}-group"
        self.topic = topic or name
        if topic is None:
            peer.create(name, 2)
        peer.find_coordinator(name, TRANSACTION)
        peer.find_coordinator(self.group, GROUP)
        self.producer = self.first_producer()

    def first_producer(self) -> Producer:
        """Gets the first producer id, once the coordinator has loaded and is idle."""
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
        answer = self.peer.wait_for(request, 5, lambda answer: answer.error_code not in AGAIN)
        self.wait_for_group()
        return Producer(answer.producer_id, answer.producer_epoch)

    def wait_for_group(self) -> None:
        request = self.offset_request(stable=False)
        self.peer.wait_for(request, 8, lambda answer: answer.groups[0].error_code not in AGAIN)

    def settle(self) -> None:
        """Waits until all markers are written. Not compared."""
        request = DescribeTransactionsRequest(transactional_ids=[self.name])
        self.peer.wait_for(
            request, 0, lambda answer: not answer.transaction_states[0].transaction_state.startswith("Prepare")
        )

    def init(
        self, expected: Producer = NO_PRODUCER, *, name: str | None = "", timeout_ms: int = 60_000, version: int = 5
    ) -> Producer:
        request = InitProducerIdRequest(
            transactional_id=self.name if name == "" else name,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected.producer_id,
            producer_epoch=expected.epoch,
        )
        answer = self.peer.ask(request, version, InitProducerIdResponse)
        return Producer(answer.producer_id, answer.producer_epoch)

    def add(
        self,
        *partitions: int,
        producer: Producer | None = None,
        name: str | None = None,
        topic: str | None = None,
        version: int = 3,
    ) -> None:
        producer = producer or self.producer
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name if name is None else name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic or self.topic, partitions=list(partitions))],
        )
        answer = self.peer.quietly(request, version)
        assert isinstance(answer, AddPartitionsToTxnResponse)
        self.note_sorted(request, version, answer, answer.results_by_topic_v3_and_below)

    def note_sorted(
        self,
        request: AddPartitionsToTxnRequest,
        version: int,
        answer: AddPartitionsToTxnResponse,
        topics: Iterable[AddPartitionsToTxnTopicResult],
    ) -> None:
        """Records an answer without the order of its partitions, which in Apache Kafka is the order of a hash table."""
        for topic in topics:
            topic.results_by_partition.sort(key=lambda result: result.partition_index)
        self.note(request, version, answer)

    def note(self, request: object, version: int, answer: object) -> None:
        self.peer.trace.append(Exchange(request, version, Plain(self.peer).struct(answer)))

    def add_batched(self, *partitions: int, verify: bool, producer: Producer | None = None, version: int = 5) -> None:
        producer = producer or self.producer
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.name,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify,
            topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=list(partitions))],
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        answer = self.peer.quietly(request, version)
        assert isinstance(answer, AddPartitionsToTxnResponse)
        self.note_sorted(request, version, answer, answer.results_by_transaction[0].topic_results)

    def add_offsets(self, *, producer: Producer | None = None, version: int = 4) -> None:
        producer = producer or self.producer
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            group_id=self.group,
        )
        self.peer.ask(request, version, AddOffsetsToTxnResponse)

    def write(
        self,
        partition: int = 0,
        *,
        sequence: int = 0,
        count: int = 1,
        producer: Producer | None = None,
        name: str | None = "",
        version: int = 12,
    ) -> None:
        producer = producer or self.producer
        now_ms = time.time_ns() // 1_000_000
        batch = build(
            records(count, timestamp=now_ms),
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
        request = ProduceRequest(
            transactional_id=self.name if name == "" else name, acks=-1, timeout_ms=1000, topic_data=[data]
        )
        self.peer.ask(request, version, ProduceResponse)

    def commit_offset(
        self,
        offset: int,
        *,
        name: str | None = None,
        producer: Producer | None = None,
        group: str | None = None,
        partition: int = 0,
        generation: int = -1,
        member: str = "",
        version: int = 5,
    ) -> None:
        producer = producer or self.producer
        request = txn_offset_commit(
            self.group if group is None else group, self.name if name is None else name, producer,
            {self.topic: {partition: offset}}, metadata="m", generation_id_or_member_epoch=generation, member_id=member,
        )  # fmt: skip
        self.peer.ask(request, version, TxnOffsetCommitResponse)

    def offset_request(self, *, stable: bool) -> OffsetFetchRequest:
        return offset_fetch(self.group, {self.topic: [0, 1]}, stable=stable)

    def fetch_offset(self, *, stable: bool = True) -> None:
        self.peer.ask(self.offset_request(stable=stable), 8, OffsetFetchResponse)

    def end(
        self, *, committed: bool = True, producer: Producer | None = None, version: int = 5, settled: bool = True
    ) -> Producer:
        """Ends the transaction, and continues with the producer in the answer; waits for all markers, unless `settled`
        is False."""
        ending = producer or self.producer
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=ending.producer_id,
            producer_epoch=ending.epoch,
            committed=committed,
        )
        answer = self.peer.ask(request, version, EndTxnResponse)
        if settled:
            self.settle()
        if version >= 5 and not answer.error_code and producer is None:
            self.producer = Producer(answer.producer_id, answer.producer_epoch)
        return self.producer

    def fetch(self, partition: int = 0, *, committed: bool = True, offset: int = 0) -> None:
        topic = FetchTopic(
            topic=self.topic,
            partitions=[FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)],
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=int(committed),
            session_id=0,
            session_epoch=-1,
            topics=[topic],
        )
        self.peer.ask(request, 12, FetchResponse)

    def end_offsets(self, *, committed: bool) -> None:
        for timestamp in (-1, -2, 0):
            requested = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=int(committed),
                topics=[ListOffsetsTopic(name=self.topic, partitions=requested)],
            )
            self.peer.ask(request, 7, ListOffsetsResponse)

    def mark(
        self,
        partition: int = 0,
        *,
        producer: Producer | None = None,
        committed: bool = False,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
        version: int = 1,
    ) -> None:
        producer = producer or self.producer
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transaction_result=committed,
            topics=[WritableTxnMarkerTopic(name=self.topic, partition_indexes=[partition])],
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
        self.peer.ask(WriteTxnMarkersRequest(markers=[marker]), version, WriteTxnMarkersResponse)

    def describe(self, *names: str) -> None:
        """Describes the transaction, without the order of its partitions, which in Apache Kafka is the order of a hash
        table."""
        request = DescribeTransactionsRequest(transactional_ids=list(names) or [self.name])
        answer = self.peer.quietly(request, 0)
        assert isinstance(answer, DescribeTransactionsResponse)
        for state in answer.transaction_states:
            state.topics.sort(key=lambda topic: topic.topic)
            for topic in state.topics:
                topic.partitions.sort()
        self.note(request, 0, answer)

    def describe_producers(self, *partitions: int) -> None:
        topic = TopicRequest(name=self.topic, partition_indexes=list(partitions) or [0])
        self.peer.ask(DescribeProducersRequest(topics=[topic]), 0, DescribeProducersResponse)

    def list_all(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
        version: int = 2,
    ) -> None:
        request = ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=duration_ms,
            transactional_id_pattern=pattern,
        )
        self.peer.ask(request, version, ListTransactionsResponse)
