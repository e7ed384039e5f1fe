"""Compares Fetch with Apache Kafka: the records, their amount, and the errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from protocol.messages.fetch import FetchRequest
from protocol.records.compression import Compression
from tests.interop.conformance.compare import Both
from tests.interop.conformance.deleting import delete_records
from tests.interop.conformance.fetching import FetchFrom, fetch
from tests.interop.conformance.meant import FETCHED
from tests.interop.conformance.peers import Pair, Peer
from tests.interop.conformance.producing import request as produce_request
from tests.interop.conformance.records import batch

PRODUCE_VERSION = 11
READ_COMMITTED = 1
ONE_BATCH = len(batch(4))

BATCHES = [batch(4), batch(4, compression=Compression.GZIP), *[batch(4)] * 3, batch(4, compression=Compression.LZ4)]
ZSTD = batch(4, compression=Compression.ZSTD)

Make = Callable[[Peer], FetchRequest]


def one(topic: str = "read", partition: int = 0, **fields: int) -> Callable[..., Make]:
    requested = FetchFrom(topic, partition, **fields)
    return lambda **options: lambda peer: fetch(peer, requested, **options)


def several(*requested: FetchFrom, **options: int) -> Make:
    return lambda peer: fetch(peer, *requested, **options)  # type: ignore[arg-type]


CASES: dict[str, Make] = {
    "all": one()(),
    "from within a batch": one(offset=5)(),
    "the last": one(offset=23)(),
    "the end": one(offset=24)(),
    "the end, waiting": one(offset=24)(max_wait_ms=30, min_bytes=1),
    "beyond the end": one(offset=25)(),
    "beyond the end, waiting": one(offset=25)(max_wait_ms=2000, min_bytes=1),
    "before the start": one(offset=-1)(),
    "far before the start": one(offset=-5)(),
    "one byte": one(max_bytes=1)(),
    "no bytes": one(max_bytes=0)(),
    "a negative size": one(max_bytes=-1)(),
    "a batch": one(max_bytes=ONE_BATCH)(),
    "a batch and a bit": one(max_bytes=ONE_BATCH + 9)(),
    "less than a batch": one(max_bytes=ONE_BATCH - 1)(),
    "one byte in all": one()(max_bytes=1),
    "no bytes in all": one()(max_bytes=0),
    "a negative size in all": one()(max_bytes=-1),
    "more than there is": one(offset=20)(min_bytes=100_000, max_wait_ms=30),
    "more than there is, at once": one(offset=20)(min_bytes=100_000),
    "read committed": one()(isolation_level=READ_COMMITTED),
    "read committed at the end": one(offset=24)(isolation_level=READ_COMMITTED),
    "another isolation": one()(isolation_level=9),
    "an unknown partition": one(partition=9)(),
    "a negative partition": one(partition=-1)(),
    "an unknown topic": one("nowhere")(),
    "an unknown topic, waiting": one("nowhere")(min_bytes=1, max_wait_ms=2000),
    "no name": one("")(),
    "an invalid name": one("not a name!")(),
    "the right epoch": one(leader_epoch=0)(),
    "an epoch ahead": one(leader_epoch=1)(),
    "an epoch ahead, waiting": one(leader_epoch=1)(min_bytes=1, max_wait_ms=2000),
    "a log of the same epoch": one(fetched_epoch=0)(),
    "a log of the same epoch, beyond the end": one(fetched_epoch=0, offset=25)(),
    "a log of an epoch ahead": one(fetched_epoch=1)(),
    "deleted": one("deleted", offset=2)(),
    "partly deleted": one("deleted", offset=5)(),
    "not deleted": one("deleted", offset=6)(),
    "an empty log": one("read", 1)(),
    "beyond an empty log": one("read", 1, offset=1)(),
    "a topic of zstd": one("zstd")(),
    "a batch of zstd": one("codecs")(),
    "a batch of zstd further on": one("codecs", 1)(),
    "the batch of zstd": one("codecs", 1, offset=4)(),
    "stamped by the broker": one("stamped")(),
    "nothing": several(),
    "nothing, waiting": several(max_wait_ms=2000, min_bytes=1),
    "several": several(FetchFrom("read", 0), FetchFrom("read", 1), FetchFrom("stamped", 0), FetchFrom("read", 2, 4)),
    "several, with errors": several(
        FetchFrom("read", 9), FetchFrom("read", 0), FetchFrom("nowhere", 0), FetchFrom("read", 2, 99)
    ),
    "several, waiting with an error": several(
        FetchFrom("read", 1), FetchFrom("read", 2, 99), max_wait_ms=2000, min_bytes=1
    ),
    "several, one batch in all": several(
        FetchFrom("read", 1), FetchFrom("read", 0), FetchFrom("read", 2), max_bytes=ONE_BATCH
    ),
    "several, two batches in all": several(FetchFrom("read", 0), FetchFrom("read", 2), max_bytes=2 * ONE_BATCH + 5),
    "several, one byte each": several(FetchFrom("read", 0, max_bytes=1), FetchFrom("read", 2, max_bytes=1)),
    "several, no bytes for the first": several(FetchFrom("read", 0, max_bytes=0), FetchFrom("read", 2)),
    "the same twice": several(FetchFrom("read", 0), FetchFrom("read", 0, 20)),
    "the same in two places": several(FetchFrom("read", 0), FetchFrom("stamped", 0), FetchFrom("read", 0, 20)),
}


def make_topics(peer: Peer) -> None:
    for name, partitions, configs in (
        ("read", 3, {}),
        ("zstd", 1, {"compression_type": "zstd"}),
        ("stamped", 1, {"message_timestamp_type": "LogAppendTime"}),
        ("deleted", 1, {}),
    ):
        topic_id = peer.create(name, partitions, **configs)
        for index in (0, 2) if partitions > 1 else (0,):
            for data in BATCHES:
                peer.quietly(produce_request(name, topic_id, (index, data)), PRODUCE_VERSION)
    topic_id = peer.create("codecs", 2)
    for index, data in ((0, ZSTD), (1, batch(4)), (1, ZSTD)):
        peer.quietly(produce_request("codecs", topic_id, (index, data)), PRODUCE_VERSION)
    delete_records(peer, "deleted", 5)


@pytest.fixture(scope="module")
def topics(pair: Pair) -> None:
    for peer in (pair.odradek, pair.apache):
        make_topics(peer)


@pytest.mark.before_4
@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("case", CASES)
def test_fetches(both: Both, case: str) -> None:
    def script(peer: Peer, version: int) -> None:
        peer.try_ask(CASES[case](peer), version)

    both.each_version(FetchRequest, script, allowed=FETCHED.get(case, ()))
