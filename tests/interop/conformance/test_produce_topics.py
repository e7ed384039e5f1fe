"""Compares Produce with Apache Kafka: the effects of topics' configs, and whole requests."""

from __future__ import annotations

import pytest

from protocol.messages.produce import ProduceRequest
from protocol.records.building import build
from protocol.records.compression import Compression
from tests.interop.conformance.bytes_of import damaged, header_changed
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import TWICE
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.producing import fetch_all, produce, request
from tests.interop.conformance.records import batch, records

OLDEST, NEWEST = 3, 13
NO_ID_VERSION = 12
TRANSACTION = 1
UNKNOWN_ID = b"\x01" * 16
YEAR_MS = 365 * 86_400_000

KEYLESS = bytes(build([*records(), *records(key=None), *records(), *records(key=None)]))

TOPICS: dict[str, tuple[dict[str, str], list[bytes]]] = {
    "log append time": ({"message_timestamp_type": "LogAppendTime"}, [batch(3), header_changed(batch(), attributes=8)]),
    "log append time, compressed": (
        {"message_timestamp_type": "LogAppendTime"},
        [batch(3, compression=Compression.GZIP), batch(3, compression=Compression.LZ4)],
    ),
    "log append time, recompressed": (
        {"message_timestamp_type": "LogAppendTime", "compression_type": "gzip"},
        [batch(3), batch(3, compression=Compression.LZ4)],
    ),
    "max.message.bytes": ({"max_message_bytes": "200"}, [batch(2), batch(20), batch(20, compression=Compression.GZIP)]),
    "gzip": (
        {"compression_type": "gzip"},
        [batch(9), batch(9, compression=Compression.ZSTD), batch(9, compression=Compression.GZIP)],
    ),
    "snappy": ({"compression_type": "snappy"}, [batch(9), batch(9, compression=Compression.LZ4)]),
    "lz4": ({"compression_type": "lz4"}, [batch(9), batch(9, compression=Compression.SNAPPY)]),
    "zstd": ({"compression_type": "zstd"}, [batch(9), batch(9, compression=Compression.GZIP)]),
    "uncompressed": ({"compression_type": "uncompressed"}, [batch(9), batch(9, compression=Compression.GZIP)]),
    "compacted": ({"cleanup_policy": "compact"}, [batch(3), KEYLESS, bytes(build(records(5, key=None)))]),
    "compacted and deleted": ({"cleanup_policy": "compact,delete"}, [batch(3), KEYLESS]),
    "too old": ({"message_timestamp_before_max_ms": "3600000"}, [batch(5), bytes(build(records(timestamp=-1)))]),
    "no future": ({"message_timestamp_after_max_ms": "0"}, [batch(), bytes(build(records(2, timestamp=1 << 45)))]),
    "more replicas than there are": ({"min_insync_replicas": "2"}, [batch()]),
    "larger than a segment": (
        {"segment_bytes": "1048576", "max_message_bytes": "2000000"},
        [bytes(build(records(size=1100000)))],
    ),
}


@pytest.mark.before_4
@pytest.mark.parametrize("case", TOPICS)
def test_topics(both: Both, case: str) -> None:
    configs, batches = TOPICS[case]
    versions = list(both.pair.versions(ProduceRequest))

    def script(peer: Peer) -> None:
        name = f"topic-{list(TOPICS).index(case)}"
        topic_id = peer.create(name, versions[-1] + 1, **configs)
        for version in versions:
            for data in batches:
                produce(peer, version, name, topic_id, (version, data))
        produce(peer, versions[-1], name, topic_id, (0, batches[0]), acks=1)
        fetch_all(peer, name, versions[-1] + 1)

    both(script)


@pytest.mark.before_4
def test_requests(both: Both) -> None:
    """Tests acks, unknown topics, and several partitions, some of which are rejected."""

    def script(peer: Peer) -> None:
        topic_id = peer.create("requests", 3)
        for version in both.pair.versions(ProduceRequest):
            for acks in (-1, 1, 2, -2):
                produce(peer, version, "requests", topic_id, (0, batch()), acks=acks)
                produce(peer, version, "requests", topic_id, (0, b""), acks=acks)
                produce(peer, version, "requests", topic_id, (9, batch()), (0, batch()), (1, batch()), acks=acks)
                produce(
                    peer, version, "requests", topic_id, (0, batch()), (1, damaged(batch())), (2, batch()), acks=acks
                )
            produce(peer, version, "nowhere", UNKNOWN_ID, (0, batch()))
            produce(peer, version, "nowhere", UNKNOWN_ID, (-1, batch()))
            produce(peer, version, "not a name!", bytes(16), (0, batch()))
            produce(peer, version, "", topic_id, (0, batch()))
            produce(peer, version, "requests", topic_id)
            peer.try_ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[]), version)
        fetch_all(peer, "requests", 3)

    both(script)


@pytest.mark.before_4
def test_the_same_partition_twice(both: Both) -> None:
    def script(peer: Peer) -> None:
        topic_id = peer.create("twice")
        for version in both.pair.versions(ProduceRequest):
            produce(peer, version, "twice", topic_id, (0, batch(2)), (0, batch(3)))
        fetch_all(peer, "twice")

    both(script, allowed=TWICE)


REFUSED = {
    "acks": [(0, batch())],
    "partition": [(9, batch())],
    "bytes": [(0, damaged(batch()))],
    "some": [(0, batch()), (1, damaged(batch()))],
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_producer_that_wants_no_answer_is_told_by_a_closed_connection(both: Both, case: str) -> None:
    def script(peer: Peer) -> None:
        name = f"unacknowledged-{case}"
        topic_id = peer.create(name, 2)
        for version in (OLDEST, NEWEST):
            peer.send_only(request(name, topic_id, *REFUSED[case], acks=0), version)
            peer.note_end()
        peer.send_only(request(name, topic_id, (0, batch()), acks=0), NEWEST)
        fetch_all(peer, name, 2)

    both(script)


def test_transactions_that_were_not_begun(both: Both) -> None:
    def script(peer: Peer) -> None:
        topic_id = peer.create("transactional")
        peer.find_coordinator("t", TRANSACTION)
        one = batch(transactional=True, producer_id=900, producer_epoch=0, base_sequence=0)
        for version in both.pair.versions(ProduceRequest):
            for transactional_id in (None, "", "t"):
                for data in (one, batch(), batch(producer_id=5, producer_epoch=0, base_sequence=0)):
                    requested = request("transactional", topic_id, (0, data), transactional_id=transactional_id)
                    peer.try_ask(requested, version)
        fetch_all(peer, "transactional")

    both(script)


P, Q = 7000, 7001
SEQUENCES: dict[str, list[tuple[int, int, int, int]]] = {
    "in order": [(P, 0, 0, 2), (P, 0, 2, 1), (P, 0, 3, 5)],
    "the last again": [(P, 0, 0, 2), (P, 0, 2, 1), (P, 0, 2, 1), (P, 0, 0, 2)],
    "older than five": [(P, 0, number, 1) for number in range(7)] + [(P, 0, 0, 1), (P, 0, 2, 1)],
    "part of one again": [(P, 0, 0, 3), (P, 0, 1, 2), (P, 0, 0, 2), (P, 0, 0, 5)],
    "two at once again": [(P, 0, 0, 1), (P, 0, 1, 1), (P, 0, 0, 2)],
    "a gap": [(P, 0, 0, 1), (P, 0, 2, 1), (P, 0, 1, 1)],
    "begun in the middle": [(P, 0, 5, 1), (P, 0, 6, 1)],
    "another epoch": [(P, 0, 0, 1), (P, 1, 0, 1), (P, 0, 1, 1), (P, 1, 1, 1)],
    "another epoch, not at 0": [(P, 0, 0, 1), (P, 1, 1, 1), (P, 3, 0, 1), (P, 2, 0, 1)],
    "around": [(P, 0, 2**31 - 2, 1), (P, 0, 2**31 - 1, 1), (P, 0, 0, 1), (P, 0, 1, 1)],
    "around within a batch": [(P, 0, 2**31 - 2, 4), (P, 0, 2, 1), (P, 0, 2**31 - 2, 4)],
    "two producers": [(P, 0, 0, 1), (Q, 0, 0, 1), (P, 0, 1, 1), (Q, 0, 2, 1), (Q, 0, 1, 1)],
    "negative epoch": [(P, -1, 0, 1), (P, -2, 0, 1)],
    "the largest epoch": [(P, 32767, 0, 1), (P, 0, 0, 1)],
}


@pytest.mark.parametrize("case", SEQUENCES)
def test_idempotent_producers(both: Both, case: str) -> None:
    def script(peer: Peer) -> None:
        name = f"idempotent-{list(SEQUENCES).index(case)}"
        topic_id = peer.create(name, 2)
        for index, version in enumerate((NO_ID_VERSION, NEWEST)):
            for producer_id, epoch, sequence, count in SEQUENCES[case]:
                data = batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
                produce(peer, version, name, topic_id, (index, data))
        fetch_all(peer, name, 2)

    both(script)
