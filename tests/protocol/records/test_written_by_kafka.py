"""Compares batches and message sets that Apache Kafka's own classes wrote: we read them, and write them byte for byte.

Compressed batches are compared by content, because compressors differ. `written_by_kafka.txt` has a name and bytes in
each line: three records of offsets 100, 101 and 105, in every format, codec and timestamp type (with 777 as log append
time), and one batch of each kind of control record.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from protocol.records import control
from protocol.records.batch import BatchHeader, iter_batches, read_header, stamp, validate
from protocol.records.building import assemble
from protocol.records.compression import Compression
from protocol.records.control import ControlType, EndTxnMarker
from protocol.records.legacy import down_convert
from protocol.records.message_set import encode_message_set, read_messages
from protocol.records.record import Record, encode_records, read_records
from protocol.types import NO_UUID

LINES = (Path(__file__).parent / "written_by_kafka.txt").read_text().splitlines()
WRITTEN = {name: bytes.fromhex(data) for name, data in (line.split() for line in LINES if not line.startswith("#"))}

HEADERS = (("h", b"x"), ("n", None))
RECORDS = [
    Record(100, 1700000000000, b"k", b"v"),
    Record(101, 1699999999999, None, b"hello hello hello hello"),
    Record(105, 1700000000001, b"key", None),
]
APPENDED_MS = 777


def expected(name: str) -> list[Record]:
    magic, _, timestamps = name.split("_")
    records = (
        [record._replace(timestamp=APPENDED_MS) for record in RECORDS] if timestamps == "LogAppendTime" else RECORDS
    )
    if magic == "v0":
        return [record._replace(timestamp=-1) for record in records]
    return [*records[:2], records[2]._replace(headers=HEADERS)] if magic == "v2" else records


def named(*, magic: str, codec: str = "") -> list[str]:
    return [name for name in WRITTEN if name.startswith(f"{magic}_{codec}")]


def single(name: str) -> tuple[bytes, BatchHeader]:
    batch = WRITTEN[name]
    ((position, header),) = iter_batches(batch)
    validate(batch, position, header)
    return batch, header


@pytest.mark.parametrize("name", named(magic="v2"))
def test_batches_are_read(name: str) -> None:
    batch, header = single(name)
    assert header.compression.name == name.split("_")[1].upper()
    assert list(read_records(batch, 0, header)) == expected(name)


@pytest.mark.parametrize("name", named(magic="v0") + named(magic="v1"))
def test_message_sets_are_read(name: str) -> None:
    assert list(read_messages(WRITTEN[name])) == expected(name)


@pytest.mark.parametrize("name", named(magic="v2", codec="none"))
def test_batches_are_written(name: str) -> None:
    batch, header = single(name)
    records = [*RECORDS[:2], RECORDS[2]._replace(headers=HEADERS)]
    assert assemble(header, encode_records(records, [0, 1, 5], header.base_timestamp)) == batch


@pytest.mark.parametrize("name", named(magic="v0") + named(magic="v1"))
def test_message_sets_are_written(name: str) -> None:
    magic, codec, timestamps = name.split("_")
    written = encode_message_set(
        RECORDS,
        int(magic[1:]),
        compression=Compression[codec.upper()],
        log_append_time_ms=APPENDED_MS if timestamps == "LogAppendTime" else None,
    )
    assert list(read_messages(written)) == expected(name)
    if codec == "none":
        assert written == WRITTEN[name]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize(("magic", "timestamps"), [(0, "CreateTime"), (1, "CreateTime"), (1, "LogAppendTime")])
def test_batches_are_converted_down_to_what_kafka_would_have_written(codec: str, magic: int, timestamps: str) -> None:
    down = down_convert(WRITTEN[f"v2_{codec}_{timestamps}"], magic, first_offset=0)
    name = f"v{magic}_{codec}_{timestamps}"
    assert list(read_messages(down)) == expected(name)
    if codec == "none":
        assert down == WRITTEN[name]


def test_the_broken_checksum_of_lz4_in_magic_0_is_kafka_s() -> None:
    ours = encode_message_set(RECORDS, 0, compression=Compression.LZ4)
    frame = WRITTEN["v0_lz4_CreateTime"].index(b"\x04\x22\x4d\x18")
    assert ours[frame : frame + 7] == WRITTEN["v0_lz4_CreateTime"][frame : frame + 7]


def test_a_commit_marker() -> None:
    batch, header = single("commit")
    (record,) = read_records(batch, 0, header)
    assert control.decode_marker(record) == EndTxnMarker(ControlType.COMMIT, 4)
    ours = control.end_txn_batch(EndTxnMarker(ControlType.COMMIT, 4), producer_id=77, producer_epoch=3, now_ms=123)
    stamp(ours, 0, 5, 9)
    assert ours == batch


QUORUM_RECORDS: dict[str, Any] = {
    "leader": control.LeaderChangeMessage(
        version=0, leader_id=1, voters=[control.ChangeVoter(voter_id=1, voter_directory_id=NO_UUID)], granting_voters=[]
    ),
    "sheader": control.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=55),
    "sfooter": control.SnapshotFooterRecord(version=0),
    "kversion": control.KRaftVersionRecord(version=0, k_raft_version=1),
    "voters": control.VotersRecord(
        version=0,
        voters=[
            control.Voter(
                voter_id=1,
                voter_directory_id=(1).to_bytes(8, "big") + (2).to_bytes(8, "big"),
                endpoints=[control.VoterEndpoint(name="CONTROLLER", host="localhost", port=60000)],
                k_raft_version_feature=control.KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
            )
        ],
    ),
}


@pytest.mark.parametrize("name", QUORUM_RECORDS)
def test_a_quorum_record(name: str) -> None:
    batch, header = single(name)
    (record,) = read_records(batch, 0, header)
    assert header.is_control
    assert control.decode_quorum_record(record) == QUORUM_RECORDS[name]
    written = control.quorum_record(QUORUM_RECORDS[name], 123)
    assert written._replace(offset=header.base_offset) == record


def test_every_control_type_has_been_read() -> None:
    batches = [WRITTEN[name] for name in ("commit", *QUORUM_RECORDS)]
    keys = [next(read_records(batch, 0, read_header(batch))).key for batch in batches]
    assert {control.decode_key(key) for key in keys} == set(ControlType) - {ControlType.ABORT}
