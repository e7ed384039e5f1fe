"""Compares unusual requests, which no client library sends, with Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.messages.alter_configs import AlterConfigsRequest
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
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.describe_configs import DescribeConfigsRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.building import build
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import NO_OPERATION, NO_REPORTERS, NOT_GROWN
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.records import batch, records
from tests.interop.conformance.test_configs import (
    BROKER,
    DELETE,
    LOGGER,
    SET,
    TOPIC,
    UNKNOWN,
    alter_in_part,
    alter_whole,
    describe,
)

NAME = "odd"
ABSENT = "odd-and-absent"
UNSUPPORTED = -7
FIRST_WITHOUT_CREATION = 4
"""The version before which Metadata creates missing topics."""

GROUP, TRANSACTION = 0, 1
LATEST = -1


def prepared(peer: Peer) -> bytes:
    """Returns the id of a topic of two partitions with records."""
    for topic_id, name in peer.names.items():
        if name == NAME:
            return topic_id
    topic_id = peer.create(NAME, 2)
    for index in (0, 1):
        data = [PartitionProduceData(index=index, records=batch(3))]
        request = ProduceRequest(
            acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=NAME, partition_data=data)]
        )
        peer.quietly(request, 11)
    return topic_id


def fetch_of(topic_id: bytes, *requested: FetchPartition, name: str = NAME, **fields: Any) -> FetchRequest:
    topic = FetchTopic(topic=name, topic_id=topic_id, partitions=list(requested))
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=-1, topics=[topic], **fields)


def from_0(partition: int = 0, **fields: Any) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20, **fields)


@pytest.mark.parametrize("epoch", [-(1 << 31), -2, -1, 0, 1, (1 << 31) - 1])
def test_a_leader_epoch_below_none_is_none(both: Both, epoch: int) -> None:
    def fetched(peer: Peer, version: int) -> None:
        peer.try_ask(fetch_of(prepared(peer), from_0(current_leader_epoch=epoch)), version)

    def listed(peer: Peer, version: int) -> None:
        prepared(peer)
        requested = ListOffsetsPartition(partition_index=0, timestamp=LATEST, current_leader_epoch=epoch)
        topics = [ListOffsetsTopic(name=NAME, partitions=[requested])]
        peer.try_ask(ListOffsetsRequest(replica_id=-1, topics=topics), version)

    def ended(peer: Peer, version: int) -> None:
        prepared(peer)
        for leader_epoch in (epoch, 0):
            requested = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=leader_epoch)
            topics = [OffsetForLeaderTopic(topic=NAME, partitions=[requested])]
            peer.try_ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), version)

    both.each_version(FetchRequest, fetched)
    both.each_version(ListOffsetsRequest, listed)
    both.each_version(OffsetForLeaderEpochRequest, ended)


@pytest.mark.parametrize("replica_id", [-3, -2, -1, 0, 1, 2, (1 << 31) - 1])
def test_a_replica_that_is_none(both: Both, replica_id: int) -> None:
    def script(peer: Peer, version: int) -> None:
        topic_id = prepared(peer)
        state = ReplicaState(replica_id=replica_id, replica_epoch=-1)
        peer.try_ask(fetch_of(topic_id, from_0(), replica_id=replica_id, replica_state=state), version)
        peer.try_ask(fetch_of(topic_id, from_0(7), replica_id=replica_id, replica_state=state), version)

    both.each_version(FetchRequest, script)


BAD_OPERATION = 9
GOOD = [("retention.ms", SET, "5000")]


@pytest.mark.parametrize("validate_only", [True, False])
def test_an_operation_that_is_none_beside_a_change_that_is_good(both: Both, validate_only: bool) -> None:
    bad = [("retention.ms", BAD_OPERATION, "5000")]

    def script(peer: Peer, version: int) -> None:
        one, other = (f"odd-{which}-{version}-{validate_only}" for which in ("one", "other"))
        peer.create(one)
        peer.create(other)
        for first, second in ((GOOD, bad), (bad, GOOD), (bad, bad)):
            alter_in_part(peer, version, (TOPIC, one, first), (TOPIC, other, second), validate_only=validate_only)
        alter_in_part(peer, version, (TOPIC, one, [*GOOD, *bad]), validate_only=validate_only)

    both.each_version(IncrementalAlterConfigsRequest, script, allowed=NO_OPERATION)


BROKERS = {
    "too many cleaners": [(BROKER, "1", [("log.cleaner.threads", SET, "100")])],
    "too many cleaners of all": [(BROKER, "", [("log.cleaner.threads", SET, "100")])],
    "twice the cleaners": [(BROKER, "1", [("log.cleaner.threads", SET, "2")])],
    "thrice the cleaners": [(BROKER, "1", [("log.cleaner.threads", SET, "3")])],
    "no reporters": [(BROKER, "1", [("metric.reporters", SET, "")])],
    "no reporters of all": [(BROKER, "", [("metric.reporters", SET, "")])],
    "loggers": [(LOGGER, "1", [("root", SET, "INFO")])],
    "loggers, a wrong level": [(LOGGER, "1", [("root", SET, "LOUD")])],
    "loggers of nobody": [(LOGGER, "", [("root", SET, "INFO")])],
    "loggers of another": [(LOGGER, "7", [("root", SET, "INFO")])],
}


@pytest.mark.parametrize("case", BROKERS)
@pytest.mark.parametrize("validate_only", [True, False])
def test_brokers_are_altered(both: Both, case: str, validate_only: bool) -> None:
    back = [(kind, name, [(key, DELETE, None) for key, _, _ in changes]) for kind, name, changes in BROKERS[case]]

    def script(peer: Peer, version: int) -> None:
        alter_in_part(peer, version, *BROKERS[case], validate_only=validate_only)
        if BROKERS[case][0][0] == BROKER:
            peer.wait_for_metadata()
            alter_in_part(peer, version, *back)
            peer.wait_for_metadata()

    both.each_version(IncrementalAlterConfigsRequest, script, allowed=NO_REPORTERS)


def test_loggers_are_not_altered_as_a_whole(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        prepared(peer)
        for name in ("1", "7", ""):
            for configs in ({}, {"root": "INFO"}):
                alter_whole(peer, version, (LOGGER, name, configs), (TOPIC, NAME, {"retention.ms": "5000"}))

    both.each_version(AlterConfigsRequest, script)


def test_a_corrupt_batch_beside_a_good_one(both: Both) -> None:
    """Apache Kafka rejects the whole request because of bytes that are not a batch, but not because of a wrong
    checksum."""

    def script(peer: Peer, version: int) -> None:
        prepared(peer)
        good, wrong = batch(3), bytearray(batch(3))
        wrong[-1] ^= 1
        for first, second in ((good, bytes(wrong)), (bytes(wrong), good), (bytes(wrong), bytes(wrong))):
            data = [PartitionProduceData(index=0, records=first), PartitionProduceData(index=1, records=second)]
            topic = TopicProduceData(name=NAME, partition_data=data)
            peer.try_ask(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic]), version)

    def all_versions(peer: Peer) -> None:
        for version in (3, 9, 12):
            script(peer, version)

    both(all_versions)


def test_a_type_that_is_none_beside_a_topic_that_is_described(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        prepared(peer)
        for kind in (UNKNOWN, 99):
            describe(peer, version, (kind, ""), (TOPIC, NAME), keys=["retention.ms"])
            describe(peer, version, (TOPIC, NAME), (kind, "x"), keys=["retention.ms"])

    both.each_version(DescribeConfigsRequest, script)


def produce_of(*requested: tuple[str, int, bytes], transactional_id: str | None = None) -> ProduceRequest:
    topics = [
        TopicProduceData(name=name, partition_data=[PartitionProduceData(index=index, records=data)])
        for name, index, data in requested
    ]
    return ProduceRequest(acks=-1, timeout_ms=5000, transactional_id=transactional_id, topic_data=topics)


def wrong_magic() -> bytes:
    data = bytearray(batch(1))
    data[16] = 3
    return bytes(data)


def old_magic() -> bytes:
    data = bytearray(batch(1))
    data[16] = 1
    return bytes(data)


def transactional_batch() -> bytes:
    return bytes(build(records(1), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True))


def test_what_is_wrong_with_records_for_a_partition_that_is_not_here(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        if version > 12:
            return
        prepared(peer)
        for name, index in ((NAME, 9), (ABSENT, 0), (NAME, -1)):
            for data in (transactional_batch(), wrong_magic(), old_magic(), batch(1), b"", b"noise", batch(1) * 2):
                for transactional_id in (None, "odd"):
                    peer.try_ask(produce_of((name, index, data), transactional_id=transactional_id), version)

    both.each_version(ProduceRequest, script)


def test_records_behind_those_of_a_transaction_are_not_looked_at(both: Both) -> None:
    """Kafka looks for the first transactional batch, and at no batch after it. So bytes that are no batch, for a
    partition that isn't here, get that partition's error."""

    def script(peer: Peer, version: int) -> None:
        if version > 12:
            return
        prepared(peer)
        peer.find_coordinator("odd", TRANSACTION)
        here = (NAME, 0, transactional_batch())
        for data in (wrong_magic(), b"\0" * 12, batch(1)):
            peer.try_ask(produce_of(here, (ABSENT, 0, data), transactional_id="odd"), version)

    both.each_version(ProduceRequest, script)


def test_records_before_those_of_a_transaction_without_an_id(both: Both) -> None:
    """Kafka first finds records that are not a batch, and rejects the whole request; records after others are not
    examined."""

    def script(peer: Peer, version: int) -> None:
        if version > 12:
            return
        prepared(peer)
        transactional = (NAME, 0, transactional_batch())
        for data in (wrong_magic(), b"\0" * 12, batch(1)):
            peer.try_ask(produce_of((ABSENT, 0, data), transactional), version)
            peer.try_ask(produce_of(transactional, (ABSENT, 0, data)), version)

    both.each_version(ProduceRequest, script)


def test_a_timestamp_that_is_not_supported_and_a_partition_that_is_not_here(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        prepared(peer)
        for timestamp in (-3, -4, -5, -6, UNSUPPORTED, -(1 << 63)):
            for name, index, epoch in ((NAME, 9, -1), (ABSENT, 0, -1), (NAME, 0, 7), (NAME, 0, -1), (NAME, -1, -1)):
                requested = ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
                topics = [ListOffsetsTopic(name=name, partitions=[requested])]
                peer.try_ask(ListOffsetsRequest(replica_id=-1, topics=topics, timeout_ms=5000), version)

    both.each_version(ListOffsetsRequest, script)


def test_a_directory_that_is_none_and_a_topic_that_cannot_be(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        prepared(peer)
        for path in ("/nowhere", "", "relative", str(peer.data)):
            for name in ("a" * 249, "a" * 250, "not a name!", "", ".", NAME, ABSENT):
                for index in (-1, 0, 9):
                    dirs = [
                        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=[index])])
                    ]
                    peer.try_ask(AlterReplicaLogDirsRequest(dirs=dirs), version)

    both.each_version(AlterReplicaLogDirsRequest, script)


def test_an_election_that_is_none(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        prepared(peer)
        for kind in (-128, -1, 0, 1, 2, 127):
            for topics in (
                [],
                [TopicPartitions(topic=NAME, partitions=[])],
                [TopicPartitions(topic=NAME, partitions=[0, 0, 9])],
                [TopicPartitions(topic=NAME, partitions=[0]), TopicPartitions(topic=NAME, partitions=[0, 1])],
            ):
                peer.try_ask(ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=5000), version)

    both.each_version(ElectLeadersRequest, script)


def test_reassignments_that_are_empty_or_doubled(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        prepared(peer)
        one = ReassignablePartition(partition_index=0, replicas=[1])
        for may_change in (True, False):
            for partitions in (
                [],
                [one],
                [one, one],
                [ReassignablePartition(partition_index=-1, replicas=[1])],
                [ReassignablePartition(partition_index=0, replicas=None)],
                [ReassignablePartition(partition_index=0, replicas=[])],
                [ReassignablePartition(partition_index=0, replicas=[1, 1])],
            ):
                topics = [ReassignableTopic(name=NAME, partitions=partitions)]
                for requested in (topics, topics * 2, []):
                    peer.try_ask(
                        AlterPartitionReassignmentsRequest(
                            timeout_ms=5000, allow_replication_factor_change=may_change, topics=requested
                        ),
                        version,
                    )

    both.each_version(AlterPartitionReassignmentsRequest, script)


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_a_coordinators_topic_is_not_grown(both: Both, name: str) -> None:
    """The request only validates: Apache Kafka would grow the topic, and not find the groups after its next start."""

    def script(peer: Peer, version: int) -> None:
        peer.find_coordinator("odd", GROUP)
        peer.find_coordinator("odd", TRANSACTION)
        requested = [CreatePartitionsTopic(name=name, count=9, assignments=None)]
        peer.try_ask(CreatePartitionsRequest(topics=requested, timeout_ms=5000, validate_only=True), version)

    both.each_version(CreatePartitionsRequest, script, allowed=NOT_GROWN)
