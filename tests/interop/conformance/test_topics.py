"""Compares CreateTopics, DeleteTopics, CreatePartitions and DeleteRecords with Apache Kafka."""

from __future__ import annotations

import pytest

from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.types import NO_UUID
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import CREATED, GROWN
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.producing import request as produce_request
from tests.interop.conformance.records import batch

PRODUCE_VERSION = 11
METADATA_VERSION = 12
FIRST_COUNTED_BY_BROKER_VERSION = 4
FIRST_VALIDATING_VERSION = 1
CREATE_VERSION = 7
FIRST_ID_VERSION = 6
UNKNOWN_ID = b"\x05" * 16

Assigned = list[tuple[int, list[int]]]


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    assigned: Assigned | None = None,
    configs: dict[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in assigned or []
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


def create(peer: Peer, version: int, *topics: CreatableTopic, validate_only: bool = False) -> None:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=5000, validate_only=validate_only)
    answer = peer.quietly(request, version)
    assert isinstance(answer, CreateTopicsResponse)
    for created in answer.topics:
        if created.topic_id != NO_UUID:
            peer.names[created.topic_id] = created.name
    peer.note(request, version, answer)


NEW: dict[str, CreatableTopic] = {
    "plain": topic("plain"),
    "several partitions": topic("several", 5),
    "no partitions": topic("none", 0),
    "negative partitions": topic("negative", -2),
    "partitions of the broker's choice": topic("chosen", -1, -1),
    "no replicas": topic("noreplicas", 1, 0),
    "negative replicas": topic("negativereplicas", 1, -2),
    "more replicas than brokers": topic("more", 1, 2),
    "assigned": topic("assigned", -1, -1, [(0, [1]), (1, [1])]),
    "assigned with counts": topic("assignedcounts", 2, 1, [(0, [1]), (1, [1])]),
    "assigned with the partitions counted": topic("assignedpartitions", 2, -1, [(0, [1]), (1, [1])]),
    "assigned to nobody": topic("assignednobody", -1, -1, [(0, [])]),
    "assigned to an unknown broker": topic("assignedunknown", -1, -1, [(0, [7])]),
    "assigned to a broker twice": topic("assignedtwice", -1, -1, [(0, [1, 1])]),
    "assigned with a gap": topic("assignedgap", -1, -1, [(0, [1]), (2, [1])]),
    "assigned from 1 on": topic("assignedfrom1", -1, -1, [(1, [1])]),
    "assigned in disorder": topic("assigneddisorder", -1, -1, [(1, [1]), (0, [1])]),
    "a partition assigned twice": topic("assignedsame", -1, -1, [(0, [1]), (0, [1])]),
    "a negative broker": topic("assignednegative", -1, -1, [(0, [-1])]),
    "assigned to different numbers": topic("assigneduneven", -1, -1, [(0, [1]), (1, [1, 2])]),
    "no name": topic(""),
    "a dot": topic("."),
    "two dots": topic(".."),
    "spaces": topic("a b"),
    "a slash": topic("a/b"),
    "a letter that is not one": topic("ü"),
    "the longest name": topic("n" * 249),
    "a name too long": topic("n" * 250),
    "the metadata log": topic("__cluster_metadata"),
    "configs": topic("configs", configs={"retention.ms": "1000", "cleanup.policy": "compact,delete"}),
    "an unknown config": topic("unknownconfig", configs={"no.such.config": "1"}),
    "a config of the wrong type": topic("wrongtype", configs={"retention.ms": "soon"}),
    "a config out of range": topic("outofrange", configs={"max.message.bytes": "-1"}),
    "a config of another value": topic("othervalue", configs={"cleanup.policy": "sometimes"}),
    "a config without a value": topic("novalue", configs={"retention.ms": None}),
    "an empty config": topic("emptyconfig", configs={"retention.ms": ""}),
    "a segment too small": topic("segments", configs={"segment.bytes": "10"}),
    "configs that contradict": topic(
        "contradict", configs={"local.retention.ms": "10", "retention.ms": "5", "remote.storage.enable": "false"}
    ),
    "tiered": topic("tiered", configs={"remote.storage.enable": "true"}),
    "more in-sync replicas": topic("insync", configs={"min.insync.replicas": "3"}),
    "a boolean": topic("boolean", configs={"preallocate": "maybe"}),
    "a codec": topic("codec", configs={"compression.type": "zip"}),
    "a level": topic("level", configs={"compression.gzip.level": "10"}),
    "many partitions": topic("many", 10001),
    "an internal topic": topic("__share_group_state"),
}


@pytest.mark.before_4
@pytest.mark.parametrize("case", NEW)
def test_one_topic(both: Both, case: str) -> None:
    """Validates in every version, creates the topic in one, and tries to create it again in all."""

    def script(peer: Peer) -> None:
        versions = list(both.pair.versions(CreateTopicsRequest))
        for version in versions:
            create(peer, version, NEW[case], validate_only=True)
        create(peer, versions[-1], NEW[case])
        for version in versions:
            create(peer, version, NEW[case])

    both(script, allowed=CREATED.get(case, ()))


@pytest.mark.before_4
def test_several_topics(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        one, other = topic(f"one-{version}"), topic(f"other-{version}")
        create(peer, version)
        create(peer, version, one, topic("a b"), other, topic("", 0))
        create(peer, version, one, topic(f"third-{version}"), one)
        create(peer, version, topic(f"fourth-{version}"), topic(f"fourth-{version}"))
        create(peer, version, topic(f"col.lision-{version}"))
        create(peer, version, topic(f"col_lision-{version}"))
        create(peer, version, topic(f"both.{version}"), topic(f"both_{version}"))

    both.each_version(CreateTopicsRequest, script)


LARGE: dict[str, list[CreatableTopic]] = {
    "as many records as there may be": [topic("large", 9_999)],
    "a record too many": [topic("large", 10_000)],
    "a partition too many": [topic("large", 10_001)],
    "as many records with configs": [topic("large", 9_998, configs={"retention.ms": "1000"})],
    "a config too many": [topic("large", 9_999, configs={"retention.ms": "1000"})],
    "as many records in two topics": [topic("large", 5_000), topic("larger", 4_998)],
    "a record too many in two topics": [topic("large", 5_000), topic("larger", 4_999)],
    "a partition too many in two topics": [topic("large", 5_000), topic("larger", 5_001)],
    "a record too many beside one that is wrong": [topic("large", 10_000), topic("large", 0), topic("a b", -5)],
    "a partition too many with one that is wrong": [topic("large", 10_000), topic("a b", 1)],
    "a topic named twice": [topic("large", 9_000), topic("large", 9_000), topic("larger", 2)],
    "a record too many beside one named twice": [topic("larger", 10_000), topic("large"), topic("large")],
    "the metadata log": [topic("large", 9_000), topic("__cluster_metadata", 9_000)],
}


@pytest.mark.before_4
@pytest.mark.parametrize("case", LARGE)
def test_large_requests(both: Both, case: str) -> None:
    def script(peer: Peer) -> None:
        for version in both.pair.versions(CreateTopicsRequest):
            if version >= FIRST_VALIDATING_VERSION:
                create(peer, version, *LARGE[case], validate_only=True)

    both(script)


@pytest.mark.before_4
def test_large_requests_leave_nothing(both: Both) -> None:
    def script(peer: Peer) -> None:
        for partitions in (10_000, 10_001):
            create(peer, CREATE_VERSION, topic("small-beside-large"), topic("too-large", partitions))
        requested = [MetadataRequestTopic(name=name, topic_id=NO_UUID) for name in ("small-beside-large", "too-large")]
        peer.wait_for_metadata()
        peer.try_ask(MetadataRequest(topics=requested, allow_auto_topic_creation=False), METADATA_VERSION)

    both(script)


@pytest.mark.before_4
def test_topics_are_deleted(both: Both) -> None:
    def delete(peer: Peer, version: int, *names: str) -> None:
        states = [DeleteTopicState(name=name, topic_id=NO_UUID) for name in names]
        peer.try_ask(DeleteTopicsRequest(topics=states, topic_names=list(names), timeout_ms=5000), version)

    def script(peer: Peer, version: int) -> None:
        names = [f"gone-{version}-{index}" for index in range(4)]
        for name in names:
            peer.create(name)
        delete(peer, version)
        delete(peer, version, names[0])
        delete(peer, version, names[0])
        delete(peer, version, names[1], "nowhere", "a b", names[2], "")
        delete(peer, version, names[3], names[3])
        delete(peer, version, "nowhere", "nowhere")
        delete(peer, version, "__cluster_metadata")

    both.each_version(DeleteTopicsRequest, script)


def test_topics_are_deleted_by_id(both: Both) -> None:
    def script(peer: Peer) -> None:
        ids = [peer.create(f"gone-by-id-{index}") for index in range(5)]
        for states in (
            [(None, ids[0])],
            [(None, ids[0])],
            [(None, UNKNOWN_ID), (None, ids[1])],
            [("gone-by-id-2", ids[2])],
            [("gone-by-id-2", NO_UUID), (None, ids[2])],
            [(None, NO_UUID)],
            [(None, ids[3]), (None, ids[3])],
            [("gone-by-id-4", NO_UUID), ("gone-by-id-4", ids[3])],
        ):
            topics = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in states]
            peer.try_ask(DeleteTopicsRequest(topics=topics, timeout_ms=5000), FIRST_ID_VERSION)

    both(script)


GROWTH: dict[str, tuple[int, list[list[int]] | None]] = {
    "more": (3, None),
    "as many": (2, None),
    "fewer": (1, None),
    "none": (0, None),
    "a negative number": (-1, None),
    "assigned": (4, [[1], [1]]),
    "assigned too few": (4, [[1]]),
    "assigned too many": (3, [[1], [1]]),
    "assigned to nobody": (3, [[]]),
    "assigned to an unknown broker": (3, [[9]]),
    "assigned to a broker twice": (3, [[1, 1]]),
    "assigned to no list": (3, []),
}


@pytest.mark.before_4
@pytest.mark.parametrize("case", GROWTH)
def test_partitions_are_added(both: Both, case: str) -> None:
    count, assigned = GROWTH[case]
    assignments = None if assigned is None else [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assigned]

    def script(peer: Peer, version: int) -> None:
        name = f"grows-{list(GROWTH).index(case)}-{version}"
        peer.create(name, 2)
        for validate_only in (True, False, False):
            topics = [CreatePartitionsTopic(name=name, count=count, assignments=assignments)]
            peer.try_ask(CreatePartitionsRequest(topics=topics, timeout_ms=5000, validate_only=validate_only), version)
        requested = [MetadataRequestTopic(name=name, topic_id=NO_UUID)]
        if case in ("more", "assigned"):
            peer.wait_for_leaders(name, range(count))
        peer.try_ask(MetadataRequest(topics=requested), METADATA_VERSION)

    both.each_version(CreatePartitionsRequest, script)


def test_many_partitions_are_added(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        names = [f"grows-large-{version}", f"grows-larger-{version}"]
        for name in names:
            peer.create(name)
        for counts in ([10_001], [10_002], [5_001, 5_001], [5_001, 5_002]):
            topics = [
                CreatePartitionsTopic(name=name, count=count, assignments=None)
                for name, count in zip(names, counts, strict=False)
            ]
            peer.try_ask(CreatePartitionsRequest(topics=topics, timeout_ms=5000, validate_only=True), version)

    both.each_version(CreatePartitionsRequest, script, allowed=GROWN)


def test_partitions_of_several_topics(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        peer.create(f"grow-{version}")
        for names in (
            [],
            ["nowhere"],
            ["a b", ""],
            [f"grow-{version}", "nowhere"],
            [f"grow-{version}", f"grow-{version}"],
        ):
            topics = [CreatePartitionsTopic(name=name, count=3, assignments=None) for name in names]
            peer.try_ask(CreatePartitionsRequest(topics=topics, timeout_ms=5000, validate_only=False), version)

    both.each_version(CreatePartitionsRequest, script)


@pytest.mark.parametrize("policy", ["delete", "compact", "compact,delete"])
def test_records_are_deleted(both: Both, policy: str) -> None:
    def script(peer: Peer, version: int) -> None:
        name = f"shrinks-{policy.replace(',', '-')}-{version}"
        topic_id = peer.create(name, 2, cleanup_policy=policy)
        for _ in range(3):
            peer.quietly(produce_request(name, topic_id, (0, batch(3))), PRODUCE_VERSION)
        for where in (
            [(name, 0, 0)],
            [(name, 0, 4)],
            [(name, 0, 2)],
            [(name, 0, 99)],
            [(name, 0, -2)],
            [(name, 9, 0), ("nowhere", 0, 0), (name, 1, 0)],
            [(name, 1, 1), (name, 1, -1)],
            [(name, 0, -1)],
            [],
            [("a b", 0, 0)],
        ):
            topics = [
                DeleteRecordsTopic(
                    name=topic, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)]
                )
                for topic, index, offset in where
            ]
            peer.try_ask(DeleteRecordsRequest(topics=topics, timeout_ms=5000), version)

    both.each_version(DeleteRecordsRequest, script)
