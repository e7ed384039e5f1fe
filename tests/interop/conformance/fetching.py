"""Short helpers for Fetch requests."""

from __future__ import annotations

from typing import NamedTuple

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from tests.interop.conformance.peers import Peer

FIRST_ID_VERSION = 13
LARGE = 1 << 20
NO_SESSION, FIRST_EPOCH, FINAL_EPOCH = 0, 0, -1


class FetchFrom(NamedTuple):
    """A partition of a fetch."""

    topic: str
    partition: int = 0
    offset: int = 0
    max_bytes: int = LARGE
    leader_epoch: int = -1
    fetched_epoch: int = -1


def topic_id(peer: Peer, name: str) -> bytes:
    """Returns the id of a peer's topic; for a topic that doesn't exist, an id made from its name."""
    for known_id, known_name in peer.names.items():
        if known_name == name:
            return known_id
    return name.encode().ljust(16, b"\0")[:16]


def fetch(
    peer: Peer,
    *partitions: FetchFrom,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    max_bytes: int = LARGE,
    isolation_level: int = 0,
    session: tuple[int, int] = (NO_SESSION, FINAL_EPOCH),
    forgotten: tuple[tuple[str, int], ...] = (),
) -> FetchRequest:
    """Returns a Fetch. Adjacent partitions of one topic share an entry, as in clients' requests."""
    topics: list[FetchTopic] = []
    for partition in partitions:
        if not topics or topics[-1].topic != partition.topic:
            topics.append(FetchTopic(topic=partition.topic, topic_id=topic_id(peer, partition.topic), partitions=[]))
        topics[-1].partitions.append(
            FetchPartition(
                partition=partition.partition,
                fetch_offset=partition.offset,
                partition_max_bytes=partition.max_bytes,
                current_leader_epoch=partition.leader_epoch,
                last_fetched_epoch=partition.fetched_epoch,
            )
        )
    left = [ForgottenTopic(topic=name, topic_id=topic_id(peer, name), partitions=[index]) for name, index in forgotten]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        forgotten_topics_data=left,
    )
