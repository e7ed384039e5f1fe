"""Compares markers, administration and deletion around transactions with Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.transaction.transaction import Producer
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.interop.conformance.compare import Allowed, Both
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.records import batch
from tests.interop.conformance.transacting import Transacting

Steps = Callable[[Transacting], None]


@pytest.fixture
def run(both: Both, topic: str) -> Callable[[Steps], None]:
    """Runs steps with a new transactional id on both brokers."""
    return lambda steps: both(lambda peer: steps(Transacting(peer, topic)))


def test_markers_from_elsewhere(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        first = txn.producer
        txn.mark(producer=Producer(first.producer_id, 0))
        txn.write()
        txn.mark(producer=Producer(first.producer_id, first.epoch + 1))
        txn.fetch()
        txn.describe_producers()
        txn.mark(producer=first)
        txn.mark(producer=Producer(first.producer_id, first.epoch + 1), coordinator_epoch=-1)
        txn.mark(producer=Producer(first.producer_id, first.epoch + 1), coordinator_epoch=3)
        txn.mark(producer=Producer(first.producer_id, first.epoch + 1), coordinator_epoch=2)
        txn.mark(9)
        txn.mark(
            producer=Producer(first.producer_id, first.epoch + 2), committed=True, version=2, transaction_version=2
        )
        txn.mark(
            producer=Producer(first.producer_id, first.epoch + 2), committed=True, version=2, transaction_version=2
        )
        txn.mark(
            producer=Producer(first.producer_id, first.epoch + 1), committed=True, version=2, transaction_version=2
        )
        txn.fetch(committed=False)

    run(steps)


def test_what_administrators_ask(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        txn.describe("", "no-such-id", txn.name)
        txn.write()
        only = txn.name
        txn.list_all(pattern=only)
        txn.list_all(pattern=only, states=["Ongoing"])
        txn.list_all(pattern=only, states=["Empty"])
        txn.list_all(pattern=only, states=["Ongoing", "Sleeping", "dead"])
        txn.list_all(pattern=only, states=["Sleeping"])
        txn.list_all(pattern=only, producer_ids=[txn.producer.producer_id, 5])
        txn.list_all(pattern=only, producer_ids=[77_000])
        txn.list_all(pattern=only, duration_ms=0)
        txn.list_all(pattern=only, duration_ms=3_600_000)
        txn.list_all(pattern=f"{only}x?")
        txn.list_all(pattern=only[:-1])
        txn.describe_producers(0, 9)
        txn.end()
        txn.list_all(pattern=only, duration_ms=0)

    run(steps)


def test_patterns_that_are_none(run: Callable[[Steps], None]) -> None:
    run(lambda txn: txn.list_all(pattern="("))


LAST_STABLE_OFFSET = (
    Allowed(r"FetchRequest v12 .*\.last_stable_offset", "Kafka's is the start of the batch, below the log's", 2, 0),
    Allowed(r"ListOffsetsRequest v7 .*\.offset", "Kafka's is the start of the batch, below the log's", 2, 0),
)


def test_records_deleted_within_a_transaction(both: Both, topic: str) -> None:
    def steps(peer: Peer) -> None:
        txn = Transacting(peer, topic)
        txn.write(count=3)
        delete(txn, 2)
        txn.fetch(offset=2)
        txn.end_offsets(committed=True)
        delete(txn, -1)
        txn.fetch(offset=3)
        txn.describe_producers()
        txn.end(committed=False)
        txn.fetch(offset=3)
        txn.end_offsets(committed=True)

    both(steps, allowed=LAST_STABLE_OFFSET)


def delete(txn: Transacting, offset: int) -> None:
    topics = [DeleteRecordsTopic(name=txn.name, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])]
    txn.peer.ask(DeleteRecordsRequest(topics=topics, timeout_ms=5000), 2, DeleteRecordsResponse)


def test_clients_do_not_write_to_internal_topics(both: Both, topic: str) -> None:
    def steps(peer: Peer, version: int) -> None:
        Transacting(peer, f"{topic}-{version}")
        for internal in ("__transaction_state", "__consumer_offsets"):
            data = TopicProduceData(name=internal, partition_data=[PartitionProduceData(index=0, records=batch())])
            peer.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), version, ProduceResponse)

    both.each_version(ProduceRequest, lambda peer, version: steps(peer, version) if version < 13 else None)
