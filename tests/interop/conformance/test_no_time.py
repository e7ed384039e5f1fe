"""Compares requests about topics and partitions with no time left: nothing is done."""

from __future__ import annotations

import pytest

from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.types import NO_UUID
from tests.interop.conformance.compare import Both
from tests.interop.conformance.peers import Peer

NAME, ABSENT, NEW = "hurried", "hurried-absent", "hurried-new"
METADATA_VERSION = 12
FIRST_ID_VERSION = 6
TIMEOUTS = [-(2**31), -2, -1, 0, 5000]
"""Timeouts; a timeout of a millisecond would be a race in Apache Kafka."""


def prepared(peer: Peer) -> bytes:
    for topic_id, name in peer.names.items():
        if name == NAME:
            return topic_id
    return peer.create(NAME, 2)


def what_there_is(peer: Peer) -> None:
    topics = [MetadataRequestTopic(name=name, topic_id=NO_UUID) for name in (NAME, NEW)]
    peer.try_ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), METADATA_VERSION)


@pytest.mark.parametrize("timeout_ms", TIMEOUTS)
def test_create_topics(both: Both, timeout_ms: int) -> None:
    def script(peer: Peer, version: int) -> None:
        prepared(peer)
        one = CreatableTopic(name=NEW, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        there = CreatableTopic(name=NAME, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        metadata = CreatableTopic(
            name="__cluster_metadata", num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        for topics in ([], [one], [one, there], [one, one], [one, one, there], [metadata], [one, metadata]):
            for validate_only in (True, False) if timeout_ms <= 0 else (True,):
                request = CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)
                peer.try_ask(request, version)
        what_there_is(peer)

    both.each_version(CreateTopicsRequest, script)


@pytest.mark.parametrize("timeout_ms", TIMEOUTS)
def test_create_partitions(both: Both, timeout_ms: int) -> None:
    def script(peer: Peer, version: int) -> None:
        prepared(peer)
        more = CreatePartitionsTopic(name=NAME, count=3, assignments=None)
        absent = CreatePartitionsTopic(name=ABSENT, count=3, assignments=None)
        for topics in ([], [more], [more, absent], [more, more], [more, more, absent]):
            for validate_only in (True, False) if timeout_ms <= 0 else (True,):
                peer.try_ask(
                    CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only), version
                )
        what_there_is(peer)

    both.each_version(CreatePartitionsRequest, script)


@pytest.mark.parametrize("timeout_ms", TIMEOUTS)
def test_delete_topics(both: Both, timeout_ms: int) -> None:
    def script(peer: Peer, version: int) -> None:
        topic_id = prepared(peer)
        names = [NAME] if timeout_ms <= 0 else []
        for topics in ([], [ABSENT, *names], [ABSENT, ABSENT], [ABSENT, ABSENT, "hurried-too", *names]):
            states = [DeleteTopicState(name=name, topic_id=NO_UUID) for name in topics]
            by_name = version < FIRST_ID_VERSION
            peer.try_ask(
                DeleteTopicsRequest(
                    topics=[] if by_name else states, topic_names=topics if by_name else [], timeout_ms=timeout_ms
                ),
                version,
            )
        if version >= FIRST_ID_VERSION:
            by_id = DeleteTopicState(name=None, topic_id=topic_id)
            both_given = DeleteTopicState(name=NAME, topic_id=topic_id)
            neither = DeleteTopicState(name=None, topic_id=NO_UUID)
            for states in ([both_given, neither], [by_id, by_id], *([[by_id], [by_id, neither]] if names else [])):
                peer.try_ask(DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms), version)
        what_there_is(peer)

    both.each_version(DeleteTopicsRequest, script)


@pytest.mark.parametrize("timeout_ms", TIMEOUTS)
def test_elect_leaders(both: Both, timeout_ms: int) -> None:
    def script(peer: Peer, version: int) -> None:
        prepared(peer)
        for kind in (0, 1, 2):
            for topics in (
                [],
                [TopicPartitions(topic=NAME, partitions=[])],
                [TopicPartitions(topic=NAME, partitions=[0, 0, 9])],
                [TopicPartitions(topic=ABSENT, partitions=[0]), TopicPartitions(topic=NAME, partitions=[1])],
                *([None] if timeout_ms <= 0 else []),
            ):
                request = ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=timeout_ms)
                peer.try_ask(request, version)

    both.each_version(ElectLeadersRequest, script)


@pytest.mark.parametrize("timeout_ms", TIMEOUTS)
def test_alter_partition_reassignments(both: Both, timeout_ms: int) -> None:
    def script(peer: Peer, version: int) -> None:
        prepared(peer)
        one = ReassignablePartition(partition_index=0, replicas=[1])
        for may_change in (True, False):
            for topics in (
                [],
                [ReassignableTopic(name=NAME, partitions=[])],
                [ReassignableTopic(name=NAME, partitions=[one])],
                [ReassignableTopic(name=ABSENT, partitions=[one]), ReassignableTopic(name=NAME, partitions=[one])],
            ):
                request = AlterPartitionReassignmentsRequest(
                    timeout_ms=timeout_ms, allow_replication_factor_change=may_change, topics=topics
                )
                peer.try_ask(request, version)

    both.each_version(AlterPartitionReassignmentsRequest, script)
