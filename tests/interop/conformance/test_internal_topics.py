"""Compares clients' access to the coordinators' topics; with separate brokers, because of its lasting effects."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.jars import APACHE_KAFKA
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.building import build
from tests.interop.brokers import ApacheKafka, Odradek
from tests.interop.conformance.compare import Both
from tests.interop.conformance.conftest import PROPERTIES, served_by
from tests.interop.conformance.meant import MEANT
from tests.interop.conformance.peers import Pair, Peer, compared
from tests.interop.conformance.records import batch, records
from tests.interop.conformance.sharing import OWN_WORDS
from tests.interop.conformance.test_doubled_in_groups import find_coordinators
from tests.interop.conformance.test_share_state import state_of
from tests.interop.conformance.transacting import Transacting

OFFSETS, TRANSACTIONS, STATE = "__consumer_offsets", "__transaction_state", "__share_group_state"
INTERNAL = (OFFSETS, TRANSACTIONS, STATE, "__cluster_metadata")
FIRST_JOINING_VERSION = 12


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Yields brokers of this module only, with all of their topics."""
    folder = tmp_path_factory.mktemp("internal")
    brokers = (
        Odradek(folder / "odradek", PROPERTIES),
        ApacheKafka(folder / "apache", PROPERTIES, version=APACHE_KAFKA),
    )
    with ThreadPoolExecutor(len(brokers)) as pool:
        list(pool.map(lambda broker: broker.start(), brokers))
    odradek, apache = (Peer(broker.name, broker.bootstrap, broker.data) for broker in brokers)
    for peer in (odradek, apache):
        find_coordinators(peer)
        state_of(peer, "share-state")
        for name in INTERNAL:
            peer.learn(name)
    yield Both(Pair(odradek, apache, compared(served_by(apache), before_4=False)), MEANT)
    for broker in brokers:
        broker.forget()


@pytest.mark.parametrize("name", INTERNAL)
def test_partitions_of_a_transaction(own: Both, name: str) -> None:
    def script(peer: Peer) -> None:
        txn = Transacting(peer, f"adding-{name.strip('_')}")
        for version in own.pair.versions(AddPartitionsToTxnRequest):
            for topics in ([(name, [0])], [(name, [99])], [(name, list[int]())], [(name, [0]), (txn.name, [0])]):
                for verify in (True, False):
                    named = [AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in topics]
                    request = AddPartitionsToTxnRequest(
                        v3_and_below_transactional_id=txn.name,
                        v3_and_below_producer_id=txn.producer.producer_id,
                        v3_and_below_producer_epoch=txn.producer.epoch,
                        v3_and_below_topics=named,
                        transactions=[
                            AddPartitionsToTxnTransaction(
                                transactional_id=txn.name,
                                producer_id=txn.producer.producer_id,
                                producer_epoch=txn.producer.epoch,
                                verify_only=verify,
                                topics=named,
                            )
                        ],
                    )
                    peer.try_ask(request, version)
            txn.describe()
            txn.end(committed=False, version=4)

    own(script)


@pytest.mark.parametrize("name", INTERNAL)
def test_records(own: Both, name: str) -> None:
    def script(peer: Peer) -> None:
        txn = Transacting(peer, f"writing-{name.strip('_')}")
        ids = {topic: topic_id for topic_id, topic in peer.names.items()}
        in_transaction = build(
            records(1),
            producer_id=txn.producer.producer_id,
            producer_epoch=txn.producer.epoch,
            base_sequence=0,
            transactional=True,
        )
        for version in own.pair.versions(ProduceRequest):
            for transactional_id, data in ((txn.name, bytes(in_transaction)), (None, batch(1))):
                topics = [
                    TopicProduceData(
                        name=topic,
                        topic_id=ids[topic],
                        partition_data=[PartitionProduceData(index=index, records=data) for index in (0, 99)],
                    )
                    for topic in (name, txn.name)
                ]
                request = ProduceRequest(
                    transactional_id=transactional_id, acks=-1, timeout_ms=5000, topic_data=topics[:1]
                )
                peer.try_ask(request, version)
        txn.describe()
        txn.end(committed=False)

    own(script)


@pytest.mark.parametrize("name", INTERNAL)
def test_deleted_records(own: Both, name: str) -> None:
    def script(peer: Peer) -> None:
        for version in own.pair.versions(DeleteRecordsRequest):
            for offset in (0, -1, 1):
                for index in (0, 99):
                    partition = DeleteRecordsPartition(partition_index=index, offset=offset)
                    topics = [DeleteRecordsTopic(name=name, partitions=[partition])]
                    peer.try_ask(DeleteRecordsRequest(topics=topics, timeout_ms=5000), version)

    own(script)


@pytest.mark.parametrize("name", INTERNAL)
def test_a_topic_of_the_name(own: Both, name: str) -> None:
    def script(peer: Peer) -> None:
        for version in own.pair.versions(CreateTopicsRequest):
            topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
            peer.try_ask(CreateTopicsRequest(topics=[topic], timeout_ms=5000), version)

    own(script, allowed=OWN_WORDS)


@pytest.mark.parametrize("name", INTERNAL)
def test_the_topic_is_deleted(own: Both, name: str) -> None:
    """This is the last step."""

    def script(peer: Peer) -> None:
        for version in own.pair.versions(DeleteTopicsRequest):
            topics = [DeleteTopicState(name=name, topic_id=bytes(16))]
            peer.try_ask(DeleteTopicsRequest(topics=topics, topic_names=[name], timeout_ms=5000), version)

    own(script, allowed=OWN_WORDS)
