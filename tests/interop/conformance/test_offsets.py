"""Compares ListOffsets and OffsetForLeaderEpoch with Apache Kafka."""

from __future__ import annotations

import pytest

from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record
from tests.interop.conformance.compare import Both
from tests.interop.conformance.deleting import delete_records
from tests.interop.conformance.meant import LISTED
from tests.interop.conformance.peers import Pair, Peer
from tests.interop.conformance.producing import request as produce_request
from tests.interop.conformance.records import OLD_MS, batch, records

PRODUCE_VERSION = 11
SPECIAL = (-1, -2, -3, -4, -5, -6, -7, -100)
LATEST, EARLIEST = -1, -2


def made_at(*timestamps: int, compression: Compression = Compression.NONE) -> bytes:
    return bytes(build([Record(timestamp=time, value=b"v") for time in timestamps], compression=compression))


TOPICS: dict[str, tuple[dict[str, str], list[bytes]]] = {
    "offsets-plain": ({}, [batch(3), bytes(build(records(3, timestamp=OLD_MS + 10)))]),
    "offsets-empty": ({}, []),
    "offsets-disorder": (
        {},
        [made_at(OLD_MS + 5, OLD_MS + 9, OLD_MS + 1), made_at(OLD_MS + 2), made_at(OLD_MS + 9, OLD_MS + 3)],
    ),
    "offsets-gzip": ({}, [made_at(OLD_MS, OLD_MS + 7, OLD_MS + 3, compression=Compression.GZIP)] * 2),
    "offsets-none": ({}, [made_at(-1, -1), made_at(-1)]),
    "offsets-stamped": ({"message_timestamp_type": "LogAppendTime"}, [batch(3)]),
    "offsets-segments": ({"segment_bytes": "1048576"}, [bytes(build(records(1, size=600_000)))] * 4),
    "offsets-deleted": ({}, [batch(3), batch(3), bytes(build(records(3, timestamp=OLD_MS + 10)))]),
    "offsets-all-deleted": ({}, [batch(3)]),
}
DELETED = {"offsets-deleted": 4, "offsets-all-deleted": -1}


@pytest.fixture(scope="module")
def topics(pair: Pair) -> None:
    for peer in (pair.odradek, pair.apache):
        for name, (configs, batches) in TOPICS.items():
            topic_id = peer.create(name, **configs)
            for data in batches:
                peer.quietly(produce_request(name, topic_id, (0, data)), PRODUCE_VERSION)
            if name in DELETED:
                delete_records(peer, name, DELETED[name])


def ask(
    peer: Peer,
    version: int,
    name: str,
    *requested: ListOffsetsPartition,
    isolation_level: int = 0,
    replica_id: int = -1,
) -> None:
    topic = ListOffsetsTopic(name=name, partitions=list(requested))
    request = ListOffsetsRequest(
        replica_id=replica_id, isolation_level=isolation_level, topics=[topic], timeout_ms=5000
    )
    peer.try_ask(request, version)


def at(timestamp: int, partition: int = 0, epoch: int = -1) -> ListOffsetsPartition:
    return ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)


@pytest.mark.before_4
@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("name", TOPICS)
def test_timestamps(both: Both, name: str) -> None:
    """Tests every special timestamp, and the timestamps around the records'."""

    def script(peer: Peer, version: int) -> None:
        for timestamp in (*SPECIAL, 0, *range(OLD_MS - 1, OLD_MS + 14), 1 << 45):
            ask(peer, version, name, at(timestamp))
        for timestamp in (LATEST, EARLIEST, OLD_MS):
            ask(peer, version, name, at(timestamp), isolation_level=1)

    both.each_version(ListOffsetsRequest, script, allowed=LISTED.get(name, ()))


@pytest.mark.before_4
@pytest.mark.usefixtures("topics")
def test_requests(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        for epoch in (-1, 0, 1):
            ask(peer, version, "offsets-plain", at(LATEST, epoch=epoch))
            ask(peer, version, "offsets-plain", at(OLD_MS, epoch=epoch))
        ask(peer, version, "offsets-plain", at(LATEST, 9), at(LATEST, -1), at(LATEST))
        ask(peer, version, "nowhere", at(LATEST))
        ask(peer, version, "not a name!", at(LATEST))
        ask(peer, version, "", at(LATEST))
        ask(peer, version, "offsets-plain", at(LATEST), at(EARLIEST))
        ask(peer, version, "offsets-plain")
        peer.try_ask(ListOffsetsRequest(replica_id=-1, topics=[]), version)
        ask(peer, version, "offsets-plain", at(LATEST), replica_id=-2)
        ask(peer, version, "offsets-plain", at(LATEST), replica_id=7)

    both.each_version(ListOffsetsRequest, script)


@pytest.mark.before_4
@pytest.mark.usefixtures("topics")
def test_ends_of_leader_epochs(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        for name in (*TOPICS, "nowhere", "not a name!"):
            for current in (-1, 0, 1):
                requested = [
                    OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
                    for partition, epoch in ((0, 0), (0, 1), (0, -1), (0, 5), (9, 0))
                ]
                for one in requested:
                    topic = OffsetForLeaderTopic(topic=name, partitions=[one])
                    peer.try_ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic]), version)
        peer.try_ask(OffsetForLeaderEpochRequest(topics=[]), version)

    both.each_version(OffsetForLeaderEpochRequest, script)
