"""Compares requests that name topics and partitions twice, or name none, with Apache Kafka."""

from __future__ import annotations

import pytest

from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_configs import DescribeConfigsRequest
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.describe_quorum import DescribeQuorumRequest
from protocol.messages.describe_quorum import PartitionData as QuorumPartition
from protocol.messages.describe_quorum import TopicData as QuorumTopic
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from protocol.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from protocol.messages.fetch import FetchRequest, FetchTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import TWICE
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.test_configs import (
    TOPIC,
    describe,
)
from tests.interop.conformance.test_odd_requests import ABSENT, FIRST_WITHOUT_CREATION, NAME, from_0, prepared

LISTS = {
    "empty": [],
    "once": [0],
    "doubled": [0, 0],
    "both": [0, 1, 0],
    "absent": [9, 9],
    "below": [-1],
}


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize("topics", [(), (NAME,), (NAME, NAME), (ABSENT, NAME, ABSENT), ("",)], ids=str)
class TestEmptyAndDoubled:
    """Requests that name partitions of existing topics twice, or name none."""

    def test_delete_records(self, both: Both, case: str, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            requested = [
                DeleteRecordsTopic(
                    name=name, partitions=[DeleteRecordsPartition(partition_index=n, offset=0) for n in LISTS[case]]
                )
                for name in topics
            ]
            peer.try_ask(DeleteRecordsRequest(topics=requested, timeout_ms=5000), version)

        both.each_version(DeleteRecordsRequest, script)

    def test_list_offsets(self, both: Both, case: str, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            requested = [
                ListOffsetsTopic(
                    name=name, partitions=[ListOffsetsPartition(partition_index=n, timestamp=-1) for n in LISTS[case]]
                )
                for name in topics
            ]
            peer.try_ask(ListOffsetsRequest(replica_id=-1, topics=requested, timeout_ms=5000), version)

        both.each_version(ListOffsetsRequest, script)

    def test_fetch(self, both: Both, case: str, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            ids = {NAME: prepared(peer)}
            requested = [
                FetchTopic(
                    topic=name, topic_id=ids.get(name, bytes(15) + b"7"), partitions=[from_0(n) for n in LISTS[case]]
                )
                for name in topics
            ]
            peer.try_ask(
                FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=-1, topics=requested), version
            )

        both.each_version(FetchRequest, script)

    def test_ends_of_epochs(self, both: Both, case: str, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            requested = [
                OffsetForLeaderTopic(
                    topic=name,
                    partitions=[
                        OffsetForLeaderPartition(partition=n, current_leader_epoch=-1, leader_epoch=0)
                        for n in LISTS[case]
                    ],
                )
                for name in topics
            ]
            peer.try_ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=requested), version)

        both.each_version(OffsetForLeaderEpochRequest, script)

    def test_producers(self, both: Both, case: str, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            requested = [TopicRequest(name=name, partition_indexes=LISTS[case]) for name in topics]
            peer.try_ask(DescribeProducersRequest(topics=requested), version)

        both.each_version(DescribeProducersRequest, script)

    def test_log_dirs(self, both: Both, case: str, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            requested = [DescribableLogDirTopic(topic=name, partitions=LISTS[case]) for name in topics]
            peer.try_ask(DescribeLogDirsRequest(topics=requested), version)

        both.each_version(DescribeLogDirsRequest, script)

    def test_reassignments(self, both: Both, case: str, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            requested = [ListPartitionReassignmentsTopics(name=name, partition_indexes=LISTS[case]) for name in topics]
            peer.try_ask(ListPartitionReassignmentsRequest(topics=requested, timeout_ms=5000), version)

        both.each_version(ListPartitionReassignmentsRequest, script)

    def test_moves(self, both: Both, case: str, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            requested = [AlterReplicaLogDirTopic(name=name, partitions=LISTS[case]) for name in topics]
            for dirs in (
                [AlterReplicaLogDir(path="/nowhere", topics=requested)],
                [AlterReplicaLogDir(path="/nowhere", topics=requested)] * 2,
                [],
            ):
                peer.try_ask(AlterReplicaLogDirsRequest(dirs=dirs), version)

        both.each_version(AlterReplicaLogDirsRequest, script)

    def test_quorum(self, both: Both, case: str, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            requested = [
                QuorumTopic(topic_name=name, partitions=[QuorumPartition(partition_index=n) for n in LISTS[case]])
                for name in topics
            ]
            peer.try_ask(DescribeQuorumRequest(topics=requested), version)

        both.each_version(DescribeQuorumRequest, script)

    def test_produce(self, both: Both, case: str, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            if version > 12:
                return
            prepared(peer)
            requested = [
                TopicProduceData(
                    name=name, partition_data=[PartitionProduceData(index=n, records=b"") for n in LISTS[case]]
                )
                for name in topics
            ]
            peer.try_ask(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=requested), version)

        both.each_version(ProduceRequest, script, allowed=TWICE)


TOPICS = [(NAME,), (NAME, NAME), (ABSENT, NAME, ABSENT), ("not a name!", "not a name!")]


@pytest.mark.parametrize("topics", TOPICS, ids=str)
class TestTopicsTwice:
    """Requests that name topics twice, or name none."""

    def test_metadata(self, both: Both, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            if not topics or (version < FIRST_WITHOUT_CREATION and ABSENT in topics):
                return
            requested = [MetadataRequestTopic(name=name) for name in topics]
            peer.try_ask(MetadataRequest(topics=requested, allow_auto_topic_creation=False), version)

        both.each_version(MetadataRequest, script)

    def test_create_topics(self, both: Both, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            requested = [
                CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
                for name in topics
            ]
            peer.try_ask(CreateTopicsRequest(topics=requested, timeout_ms=5000, validate_only=True), version)

        both.each_version(CreateTopicsRequest, script)

    def test_create_partitions(self, both: Both, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            requested = [CreatePartitionsTopic(name=name, count=3, assignments=None) for name in topics]
            peer.try_ask(CreatePartitionsRequest(topics=requested, timeout_ms=5000, validate_only=True), version)

        both.each_version(CreatePartitionsRequest, script)

    def test_delete_topics(self, both: Both, topics: tuple[str, ...]) -> None:
        if NAME in topics:
            topics = tuple(ABSENT for _ in topics)

        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            states = [DeleteTopicState(name=name, topic_id=bytes(16)) for name in topics]
            peer.try_ask(DeleteTopicsRequest(topics=states, topic_names=list(topics), timeout_ms=5000), version)

        both.each_version(DeleteTopicsRequest, script)

    def test_describe_topic_partitions(self, both: Both, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            requested = [DescribedTopic(name=name) for name in topics]
            peer.try_ask(DescribeTopicPartitionsRequest(topics=requested, response_partition_limit=10), version)

        both.each_version(DescribeTopicPartitionsRequest, script)

    def test_describe_configs(self, both: Both, topics: tuple[str, ...]) -> None:
        def script(peer: Peer, version: int) -> None:
            prepared(peer)
            describe(peer, version, *((TOPIC, name) for name in topics), keys=["retention.ms"])
            describe(peer, version, *((TOPIC, name) for name in topics), keys=[])
            describe(peer, version, *((TOPIC, name) for name in topics), keys=["retention.ms", "retention.ms"])

        both.each_version(DescribeConfigsRequest, script)
