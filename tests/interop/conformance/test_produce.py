"""Compares Produce with Apache Kafka: the accepted records, their offsets, and the errors."""

from __future__ import annotations

import pytest

from protocol.messages.produce import ProduceRequest
from protocol.records.building import build
from protocol.records.compression import Compression
from tests.interop.conformance.bytes_of import (
    damaged,
    empty_batch,
    header_changed,
    message_set,
    null_records_count,
)
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import PRODUCED
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.producing import fetch_all, produce
from tests.interop.conformance.records import OLD_MS, batch, records

ONE_BATCH: dict[str, bytes | None] = {
    "one record": batch(),
    "several records": batch(7),
    "gzip": batch(7, compression=Compression.GZIP),
    "snappy": batch(7, compression=Compression.SNAPPY),
    "lz4": batch(7, compression=Compression.LZ4),
    "zstd": batch(7, compression=Compression.ZSTD),
    "no bytes": b"",
    "a few bytes": b"\0" * 9,
    "less than a header": batch()[:40],
    "a batch cut short": batch(3)[:-4],
    "a batch and a cut one": batch() + batch()[:-4],
    "a batch and a few bytes": batch() + b"\0\0\0",
    "two batches": batch() + batch(2),
    "a damaged batch": damaged(batch()),
    "a record count too high": header_changed(batch(3), records_count=4),
    "a record count too low": header_changed(batch(3), records_count=2),
    "a negative record count": header_changed(batch(3), records_count=-1),
    "a last offset delta too high": header_changed(batch(3), last_offset_delta=3),
    "a negative last offset delta": header_changed(batch(3), last_offset_delta=-1),
    "an empty batch": empty_batch(),
    "another base offset": header_changed(batch(3), base_offset=5),
    "a negative base offset": header_changed(batch(3), base_offset=-5),
    "magic 3": header_changed(batch(), magic=3),
    "magic -1": header_changed(batch(), magic=-1),
    "messages of magic 0": message_set(0),
    "messages of magic 1": message_set(1),
    "an unknown codec": header_changed(batch(), attributes=6),
    "gzip that is not": header_changed(batch(), attributes=1),
    "a control batch": batch(control=True),
    "a transactional batch": batch(transactional=True),
    "a transactional batch of a producer": batch(
        transactional=True, producer_id=900, producer_epoch=0, base_sequence=0
    ),
    "log append time": header_changed(batch(), attributes=8),
    "a delete horizon": header_changed(batch(), attributes=0x40),
    "unused attributes": header_changed(batch(), attributes=0x80),
    "a max timestamp that is not": header_changed(batch(3), max_timestamp=OLD_MS + 50),
    "no timestamp": bytes(build(records(timestamp=-1))),
    "negative timestamps": bytes(build(records(2, timestamp=-1000))),
    "timestamps beyond time": bytes(build(records(timestamp=1 << 62))),
    "a batch length too small": header_changed(batch(), batch_length=10),
    "a batch length of nothing": header_changed(batch(), batch_length=0),
    "a negative batch length": header_changed(batch(), batch_length=-3),
    "records that are noise": null_records_count(),
    "a producer without an epoch": batch(producer_id=901, base_sequence=0),
    "a producer without a sequence": batch(producer_id=902, producer_epoch=0),
    "an idempotent producer": batch(producer_id=903, producer_epoch=0, base_sequence=0),
    "a producer in its midst": batch(producer_id=904, producer_epoch=0, base_sequence=5),
    "a leader epoch": batch(partition_leader_epoch=9),
}


@pytest.mark.before_4
@pytest.mark.parametrize("case", ONE_BATCH)
def test_one_partition(both: Both, case: str) -> None:
    """Each version has its own partition."""
    versions = list(both.pair.versions(ProduceRequest))

    def script(peer: Peer) -> None:
        name = f"produce-{list(ONE_BATCH).index(case)}"
        topic_id = peer.create(name, versions[-1] + 1)
        for version in versions:
            produce(peer, version, name, topic_id, (version, ONE_BATCH[case]))
        fetch_all(peer, name, versions[-1] + 1)

    both(script, allowed=PRODUCED.get(case, ()))
