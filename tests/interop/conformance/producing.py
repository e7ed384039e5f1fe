"""Produce requests, and their effects."""

from __future__ import annotations

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.interop.conformance.peers import Peer

FETCH_VERSION = 12
"""The newest version that names topics."""


def request(
    name: str,
    topic_id: bytes,
    *partitions: tuple[int, bytes | None],
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=records) for index, records in partitions]
    topic = TopicProduceData(name=name, topic_id=topic_id, partition_data=data)
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=5000, topic_data=[topic])


def produce(
    peer: Peer, version: int, name: str, topic_id: bytes, *partitions: tuple[int, bytes | None], acks: int = -1
) -> None:
    peer.try_ask(request(name, topic_id, *partitions, acks=acks), version)


def fetch_all(peer: Peer, name: str, partitions: int = 1) -> None:
    """Records the content of the log."""
    requested = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(partitions)
    ]
    topic = FetchTopic(topic=name, partitions=requested)
    peer.try_ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic]), FETCH_VERSION)
