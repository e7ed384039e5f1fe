"""Compares log directories, producers, elections and reassignments of a single node with Apache Kafka."""

from __future__ import annotations

import pytest

from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.interop.conformance.compare import Both
from tests.interop.conformance.peers import Pair, Peer
from tests.interop.conformance.producing import request as produce_request
from tests.interop.conformance.records import batch

PRODUCE_VERSION = 11
NAME = "replicas"
FIRST_TYPED_ELECTION = 1
FIRST_EPOCH_VERSION = 3
FIRST_FIXED_FACTOR_VERSION = 1

Partitions = tuple[tuple[str, tuple[int, ...]], ...]


@pytest.fixture(scope="module")
def topics(pair: Pair) -> None:
    for peer in (pair.odradek, pair.apache):
        topic_id = peer.create(NAME, 3)
        for index in (0, 1):
            data = batch(3, producer_id=8000 + index, producer_epoch=index, base_sequence=4)
            peer.quietly(produce_request(NAME, topic_id, (index, data)), PRODUCE_VERSION)


ASKED: tuple[Partitions, ...] = (
    ((NAME, (0, 1)),),
    ((NAME, (2, 0)),),
    ((NAME, (0, 9)),),
    ((NAME, (-1,)),),
    ((NAME, ()),),
    (("nowhere", (0,)),),
    (("a b", (0,)), ("", (0,))),
    ((NAME, (0,)), ("nowhere", (0,)), (NAME, (1,))),
    ((NAME, (0, 0)),),
    (),
)


@pytest.mark.before_4
@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("requested", ASKED, ids=str)
def test_log_directories(both: Both, requested: Partitions) -> None:
    def script(peer: Peer, version: int) -> None:
        topics = [DescribableLogDirTopic(topic=name, partitions=list(indexes)) for name, indexes in requested]
        peer.try_ask(DescribeLogDirsRequest(topics=topics), version)

    both.each_version(DescribeLogDirsRequest, script)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("requested", ASKED, ids=str)
def test_producers(both: Both, requested: Partitions) -> None:
    def script(peer: Peer) -> None:
        topics = [TopicRequest(name=name, partition_indexes=list(indexes)) for name, indexes in requested]
        peer.try_ask(DescribeProducersRequest(topics=topics), 0)

    both(script)


@pytest.mark.before_4
@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("requested", ASKED, ids=str)
def test_replicas_are_moved(both: Both, requested: Partitions) -> None:
    def script(peer: Peer, version: int) -> None:
        for path in (str(peer.data), "/nowhere", "not/absolute", ""):
            topics = [AlterReplicaLogDirTopic(name=name, partitions=list(indexes)) for name, indexes in requested]
            peer.try_ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)]), version)

    both.each_version(AlterReplicaLogDirsRequest, script)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("requested", ASKED, ids=str)
def test_leaders_are_elected(both: Both, requested: Partitions) -> None:
    def script(peer: Peer, version: int) -> None:
        for kind in (0, 1) if version >= FIRST_TYPED_ELECTION else (0,):
            topics = [TopicPartitions(topic=name, partitions=list(indexes)) for name, indexes in requested]
            peer.try_ask(ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=5000), version)

    both.each_version(ElectLeadersRequest, script)


REPLICAS: tuple[list[int] | None, ...] = ([1], None, [], [2], [1, 2], [1, 1], [-1], [2, 2])


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("replicas", REPLICAS, ids=str)
def test_partitions_are_reassigned(both: Both, replicas: list[int] | None) -> None:
    def script(peer: Peer, version: int) -> None:
        for name, index in ((NAME, 0), (NAME, 9), ("nowhere", 0), ("", 0)):
            for may_change in (True, False) if version >= FIRST_FIXED_FACTOR_VERSION else (True,):
                partition = ReassignablePartition(partition_index=index, replicas=replicas)
                request = AlterPartitionReassignmentsRequest(
                    timeout_ms=5000,
                    allow_replication_factor_change=may_change,
                    topics=[ReassignableTopic(name=name, partitions=[partition])],
                )
                peer.try_ask(request, version)
        peer.try_ask(ListPartitionReassignmentsRequest(topics=None, timeout_ms=5000), 0)

    both.each_version(AlterPartitionReassignmentsRequest, script)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("requested", ASKED, ids=str)
def test_reassignments_are_listed(both: Both, requested: Partitions) -> None:
    def script(peer: Peer) -> None:
        topics = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=list(indexes)) for name, indexes in requested
        ]
        peer.try_ask(ListPartitionReassignmentsRequest(topics=topics, timeout_ms=5000), 0)

    both(script)


def test_producer_ids(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        first = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        peer.wait_for(first, version, lambda answer: not answer.error_code)
        producers = [(-1, -1), (5, 0), (-1, 0), (5, -1), (5, 32767)] if version >= FIRST_EPOCH_VERSION else [(-1, -1)]
        for timeout_ms in (60000, 0, -1):
            for producer_id, epoch in producers:
                request = InitProducerIdRequest(
                    transactional_id=None,
                    transaction_timeout_ms=timeout_ms,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                )
                peer.try_ask(request, version)
        request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
        peer.try_ask(request, version)

    both.each_version(InitProducerIdRequest, script)
