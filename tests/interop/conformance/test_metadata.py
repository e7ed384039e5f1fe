"""Compares Metadata, and other descriptions of the cluster, with Apache Kafka."""

from __future__ import annotations

import pytest

from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.types import NO_UUID
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import CREATED_AT_ONCE, NO_NAME_AND_NO_ID
from tests.interop.conformance.peers import Pair, Peer

NAMES = ("", ".", "..", "a b", "ü", "a/b", "x" * 249, "x" * 250, "nowhere")
FIRST_ID_VERSION, FIRST_NULL_NAME_VERSION = 10, 10
FIRST_AUTHORISED_VERSION, LAST_CLUSTER_AUTHORISED_VERSION = 8, 10
TOPICS = {"meta-a": 1, "meta-b": 3, "meta-c": 2}


@pytest.fixture(scope="module")
def topics(pair: Pair) -> None:
    for peer in (pair.odradek, pair.apache):
        for name, partitions in TOPICS.items():
            peer.create(name, partitions)


def ask(peer: Peer, version: int, *names: str | None, create: bool = False, topic_id: bytes = NO_UUID) -> None:
    topics = [MetadataRequestTopic(name=name, topic_id=topic_id) for name in names]
    peer.try_ask(MetadataRequest(topics=topics, allow_auto_topic_creation=create), version)


@pytest.mark.usefixtures("topics")
def test_topics_by_name(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        ask(peer, version, "meta-a")
        ask(peer, version, "meta-c", "meta-a", "meta-b")
        ask(peer, version, "meta-a", "meta-a")
        if version < 4:  # these create what is not there
            return
        for name in NAMES:
            ask(peer, version, name)
        ask(peer, version, "meta-b", "nowhere", "a b", "meta-a")

    both.each_version(MetadataRequest, script)


@pytest.mark.usefixtures("topics")
def test_topics_by_id(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        if version < FIRST_ID_VERSION:
            return
        topic_b = next(topic_id for topic_id, name in peer.names.items() if name == "meta-b")
        for topic_id in (topic_b, b"\x07" * 16):
            ask(peer, version, None, topic_id=topic_id)
            ask(peer, version, "meta-a", topic_id=topic_id)
            ask(peer, version, None, "meta-a", topic_id=topic_id)
            for name in (None, "meta-a"):
                topics = [MetadataRequestTopic(name=name, topic_id=one_id) for one_id in (NO_UUID, topic_id)]
                peer.try_ask(MetadataRequest(topics=topics), version)

    both.each_version(MetadataRequest, script)


@pytest.mark.usefixtures("topics")
def test_neither_name_nor_id(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        if version >= FIRST_ID_VERSION:
            ask(peer, version, None)
            ask(peer, version, None, "meta-a")

    both.each_version(MetadataRequest, script, allowed=NO_NAME_AND_NO_ID)


@pytest.mark.usefixtures("topics")
def test_no_topics(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        if version > 0:
            ask(peer, version)

    both.each_version(MetadataRequest, script)


@pytest.mark.usefixtures("topics")
def test_authorised_operations(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        if version < FIRST_AUTHORISED_VERSION:
            return
        request = MetadataRequest(
            topics=[
                MetadataRequestTopic(name="meta-a", topic_id=NO_UUID),
                MetadataRequestTopic(name="", topic_id=NO_UUID),
            ],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=version <= LAST_CLUSTER_AUTHORISED_VERSION,
        )
        peer.try_ask(request, version)

    both.each_version(MetadataRequest, script)


def test_topics_are_created_by_asking_for_them(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        name = f"auto-{version}"
        ask(peer, version, name, create=True)
        peer.wait_for_leaders(name, range(1))
        peer.learn(name)
        ask(peer, version, name, create=True)
        ask(peer, version, "a b", create=True)
        ask(peer, version, "", create=True)
        ask(peer, version, f"auto.{version}", create=True)
        peer.wait_for_leaders(f"auto.{version}", range(1))
        ask(peer, version, f"auto_{version}", create=True)

    both.each_version(MetadataRequest, script, allowed=CREATED_AT_ONCE)


def test_the_cluster(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        for operations in (False, True):
            for endpoint_type in (1, 2, 0, 3) if version else (1,):
                peer.try_ask(
                    DescribeClusterRequest(
                        include_cluster_authorized_operations=operations,
                        endpoint_type=endpoint_type,
                        include_fenced_brokers=version >= 2 and operations,
                    ),
                    version,
                )

    both.each_version(DescribeClusterRequest, script)


LIMITS = (0, 1, 2, 3, 5, 2000, -1)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("limit", LIMITS)
def test_topic_partitions_page_by_page(both: Both, limit: int) -> None:
    def script(peer: Peer) -> None:
        for names in (
            ("meta-c", "meta-a", "meta-b"),
            ("meta-a",),
            ("nowhere", "meta-a"),
            ("a b",),
            ("",),
            ("meta-a", "meta-a"),
        ):
            topics = [TopicRequest(name=name) for name in names]
            for cursor in (
                None,
                Cursor(topic_name="meta-a", partition_index=0),
                Cursor(topic_name="meta-b", partition_index=1),
                Cursor(topic_name="meta-b", partition_index=9),
                Cursor(topic_name="meta-bb", partition_index=0),
                Cursor(topic_name="zzz", partition_index=0),
                Cursor(topic_name="", partition_index=0),
                Cursor(topic_name="meta-b", partition_index=-1),
            ):
                request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor)
                peer.try_ask(request, 0)

    both(script)
