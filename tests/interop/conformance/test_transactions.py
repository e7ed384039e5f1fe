"""Compares transactions with Apache Kafka: states, epochs, offsets, and the error of every wrong step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.transaction.transaction import Producer
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.interop.conformance.compare import Both
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.transacting import NO_PRODUCER, Transacting

Steps = Callable[[Transacting], None]


@pytest.fixture
def run(both: Both, topic: str) -> Callable[[Steps], None]:
    """Runs steps with a new transactional id on both brokers."""
    return lambda steps: both(lambda peer: steps(Transacting(peer, topic)))


@pytest.mark.parametrize("committed", [True, False])
def test_v2_a_transaction(run: Callable[[Steps], None], committed: bool) -> None:
    def steps(txn: Transacting) -> None:
        for _ in range(3):
            txn.write(0, count=2)
            txn.write(0, sequence=2)
            txn.write(1)
            txn.describe()
            txn.fetch()
            txn.end_offsets(committed=True)
            txn.end_offsets(committed=False)
            txn.end(committed=committed)
            txn.describe()
            txn.fetch()
            txn.fetch(1, committed=False)
            txn.describe_producers(0, 1)

    run(steps)


@pytest.mark.parametrize("committed", [True, False])
def test_v1_a_transaction(run: Callable[[Steps], None], committed: bool) -> None:
    def steps(txn: Transacting) -> None:
        for number in range(3):
            txn.add(0, 1)
            txn.add(0)
            txn.write(0, sequence=number, version=11)
            txn.write(1, sequence=number, version=11)
            txn.add_offsets()
            txn.commit_offset(number, version=4)
            txn.describe()
            txn.end(committed=committed, version=4)
            txn.describe()
            txn.fetch()
            txn.fetch_offset()
            txn.describe_producers(0, 1)

    run(steps)


def test_offsets_of_a_transaction(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        txn.commit_offset(5)
        txn.fetch_offset(stable=False)
        txn.fetch_offset(stable=True)
        txn.end()
        txn.fetch_offset(stable=True)
        txn.commit_offset(9)
        txn.end(committed=False)
        txn.fetch_offset(stable=True)

    run(steps)


def test_offsets_that_cannot_be_committed(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        txn.commit_offset(1, partition=9)
        txn.commit_offset(1, group="")
        txn.commit_offset(1, generation=4)
        txn.commit_offset(1, generation=4, member="someone")
        txn.commit_offset(1, producer=Producer(77_000, 0))
        txn.commit_offset(1, producer=Producer(txn.producer.producer_id, 9))
        txn.commit_offset(-1)
        txn.fetch_offset(stable=True)

    run(steps)


def test_each_version_of_a_commit_of_offsets(both: Both, topic: str) -> None:
    both.each_version(
        TxnOffsetCommitRequest, lambda peer, version: offsets_in(Transacting(peer, f"{topic}-{version}"), version)
    )


def offsets_in(txn: Transacting, version: int) -> None:
    txn.commit_offset(1, version=version)
    txn.add_offsets()
    txn.commit_offset(1, version=version)
    txn.commit_offset(2, producer=Producer(txn.producer.producer_id, 5), version=version)
    txn.end(version=4)
    txn.commit_offset(3, version=version)
    txn.fetch_offset()


def test_offsets_from_an_id_and_a_producer_that_nobody_knows(both: Both, topic: str) -> None:
    """kafkajs expects that they are accepted, as they were before brokers looked up producers (KIP-890)."""
    both.each_version(
        TxnOffsetCommitRequest, lambda peer, version: strangers_in(Transacting(peer, f"{topic}-{version}"), version)
    )


def strangers_in(txn: Transacting, version: int) -> None:
    stranger = Producer(999, 999)
    txn.commit_offset(1, name="foo", producer=stranger, version=version)
    txn.add_offsets()
    txn.commit_offset(1, name="foo", producer=stranger, version=version)
    txn.commit_offset(1, name="foo", version=version)
    txn.commit_offset(1, producer=stranger, version=version)
    txn.fetch_offset(stable=False)


def test_ends_in_every_state(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        for version in (4, 5):
            txn.end(version=version)
        txn.end(committed=False, version=4)
        txn.write()
        first = txn.producer
        txn.end()
        for committed in (True, False):
            txn.end(committed=committed, producer=first)
            txn.end(committed=committed, producer=first, version=4)
        txn.end(producer=txn.producer)
        txn.end(committed=False)
        txn.end(committed=False)
        txn.describe()

    run(steps)


def test_v1_ends_in_every_state(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        for committed in (True, False):
            txn.add(0)
            txn.end(committed=committed, version=4)
            txn.end(committed=True, version=4)
            txn.end(committed=False, version=4)
            txn.describe()

    run(steps)


def test_a_client_of_each_generation_by_turns(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        txn.write()
        txn.end()
        txn.add(0)
        txn.write(version=11)
        txn.end(version=4)
        txn.describe()
        txn.write(sequence=1)
        txn.end(committed=False)
        txn.fetch()
        txn.describe_producers()

    run(steps)


def test_producers_that_come_again(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        first = txn.producer
        second = txn.init(first)
        txn.init(first)
        txn.init(second)
        txn.init(first)
        txn.init(Producer(77_000, 3))
        txn.init(Producer(second.producer_id, 99))
        txn.init()
        txn.init(second)
        txn.init(second, version=3)

    run(steps)


def test_an_open_transaction_when_a_producer_comes(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        old = txn.producer
        txn.write()
        txn.init()
        txn.settle()
        txn.describe()
        txn.write(1, producer=old)
        txn.end(producer=old)
        txn.end(producer=old, committed=False)
        txn.init()
        txn.fetch()
        txn.describe_producers()

    run(steps)


def test_a_producer_that_bumps_within_its_transaction(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        txn.write()
        txn.init(txn.producer)
        txn.settle()
        txn.producer = txn.init(txn.producer)
        txn.write()
        txn.end()
        txn.fetch()

    run(steps)


@pytest.mark.parametrize("timeout_ms", [-1, 0, 1, 900_000, 900_001])
def test_timeouts_asked_for(run: Callable[[Steps], None], timeout_ms: int) -> None:
    def steps(txn: Transacting) -> None:
        txn.init(timeout_ms=timeout_ms)
        txn.describe()

    run(steps)


def test_inits_that_make_no_sense(both: Both, topic: str) -> None:
    def steps(peer: Peer, version: int) -> None:
        txn = Transacting(peer, f"{topic}-{version}")
        txn.init(version=version)
        if version >= 3:
            txn.init(Producer(5, -1), version=version)
            txn.init(Producer(-1, 5), name=None, version=version)
        txn.init(name=None, version=version)
        txn.init(Producer(txn.producer.producer_id, 0) if version >= 3 else NO_PRODUCER, version=version)

    both.each_version(InitProducerIdRequest, steps)


def test_additions_that_cannot_be(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        for version in range(4):
            txn.add(0, 9, version=version)
            txn.add(0, topic="no-such-topic", version=version)
            txn.add(0, name="no-such-id", version=version)
            txn.add(0, name="", version=version)
            txn.add(0, producer=Producer(77_000, 0), version=version)
            txn.add(0, producer=Producer(txn.producer.producer_id, 9), version=version)
        txn.add()
        txn.describe()

    run(steps)


def test_batched_additions(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        for version in (4, 5):
            txn.add_batched(0, 1, verify=True, version=version)
            txn.add_batched(0, verify=False, version=version)
            txn.add_batched(0, 1, verify=True, version=version)
            txn.add_batched(0, 9, verify=False, version=version)
            txn.add_batched(0, verify=True, producer=Producer(77_000, 0), version=version)
            txn.add_batched(0, verify=True, producer=Producer(txn.producer.producer_id, 9), version=version)
            txn.end()
            txn.add_batched(0, verify=True, version=version)

    run(steps)


def test_offsets_added_in_each_version(both: Both, topic: str) -> None:
    def steps(peer: Peer, version: int) -> None:
        txn = Transacting(peer, f"{topic}-{version}")
        txn.add_offsets(version=version)
        txn.add_offsets(producer=Producer(77_000, 0), version=version)
        txn.add_offsets(producer=Producer(txn.producer.producer_id, 9), version=version)

    both.each_version(AddOffsetsToTxnRequest, steps)


def test_ends_in_each_version(both: Both, topic: str) -> None:
    def steps(peer: Peer, version: int) -> None:
        txn = Transacting(peer, f"{topic}-{version}")
        txn.end(producer=Producer(77_000, 0), version=version)
        txn.end(producer=Producer(txn.producer.producer_id, 9), version=version)
        txn.add(0)
        txn.end(version=version)

    both.each_version(EndTxnRequest, steps)


def test_writes_in_each_version(both: Both, topic: str) -> None:
    def steps(peer: Peer, version: int) -> None:
        txn = Transacting(peer, f"{topic}-{version}")
        txn.write(version=version)
        txn.add(0, 1)
        txn.write(version=version)
        txn.write(sequence=1, version=version)
        txn.write(1, producer=Producer(txn.producer.producer_id, 9), version=version)
        txn.write(1, producer=Producer(77_000, 0), version=version)
        txn.write(1, name=None, version=version)
        txn.write(1, name="no-such-id", version=version)
        txn.write(9, version=version)
        txn.write(1, sequence=4, version=version)
        txn.end(version=4)
        txn.write(sequence=2, version=version)
        txn.fetch()

    both.each_version(ProduceRequest, lambda peer, version: steps(peer, version) if version < 13 else None)


def test_sequences_within_a_transaction(run: Callable[[Steps], None]) -> None:
    def steps(txn: Transacting) -> None:
        txn.write(sequence=3)
        txn.write(sequence=0, count=2)
        txn.write(sequence=0, count=2)
        txn.write(sequence=1)
        txn.write(sequence=9)
        txn.write(sequence=2)
        txn.end()
        txn.write(sequence=3)
        txn.write(sequence=0)
        txn.fetch()

    run(steps)
