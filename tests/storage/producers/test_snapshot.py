"""Tests producer snapshots: their bytes, and which snapshots are kept and loaded."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.batch import TRANSACTIONAL, BatchHeader
from storage.disk import OsDisk
from storage.producers.entry import CachedBatch, Origin, ProducerEntry
from storage.producers.snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from storage.producers.state import ProducerState

DISK = OsDisk()
DAY_MS = 86_400_000

KAFKA_S = bytes.fromhex(
    # version, CRC-32C, two entries
    "0001 5de29883 00000002"
    "0000000000000fa0 0003 00000009 0000000000000063 00000004 0000018bcfe56800 ffffffff 000000000000005f"
    "0000000000000fa1 0000 ffffffff ffffffffffffffff 00000000 0000018bcfe56801 00000002 ffffffffffffffff"
)
"""A snapshot as Apache Kafka 4.3.1 wrote it."""


def data_batch(pid: int, sequence: int, *, attributes: int = 0, timestamp: int = 500) -> BatchHeader:
    return BatchHeader(0, 49, 0, 2, 0, attributes, 0, timestamp, timestamp, pid, 0, sequence, 1)


def opened(path: Path) -> ProducerState:
    state = ProducerState(str(path), disk=DISK, expiration_ms=DAY_MS)
    state.find_snapshots()
    return state


def wrote(state: ProducerState, pid: int, offset: int, *, sequence: int = 0, attributes: int = 0) -> None:
    header = data_batch(pid, sequence, attributes=attributes)
    state.update(header, offset, header.max_timestamp)
    state.end_offset = offset + 1


def snapshots(path: Path) -> list[int]:
    return sorted(int(file.name.removesuffix(".snapshot")) for file in path.glob("*.snapshot"))


def producers_of_kafka_s() -> list[ProducerEntry]:
    open_transaction = ProducerEntry(4000, 3, -1, 1_700_000_000_000, txn_first_offset=95)
    open_transaction.restore(CachedBatch(9, 99, 4, 1_700_000_000_000))
    return [open_transaction, ProducerEntry(4001, 0, 2, 1_700_000_000_001)]


def test_the_file_is_kafka_s() -> None:
    assert encode_snapshot(producers_of_kafka_s()).hex() == KAFKA_S.hex()


def test_kafka_s_file_is_read() -> None:
    first, second = decode_snapshot(KAFKA_S, "x")
    assert (first.producer_id, first.epoch, first.coordinator_epoch, first.txn_first_offset) == (4000, 3, -1, 95)
    assert first.batches == [CachedBatch(9, 99, 4, 1_700_000_000_000)]
    assert first.next_sequence == 10
    assert (second.batches, second.txn_first_offset, second.next_sequence) == ([], -1, 0)


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"", "0 bytes are too few"),
        (KAFKA_S[:-1], "CRC-32C"),
        (KAFKA_S + b"\0", "CRC-32C"),
        (b"\0\2" + KAFKA_S[2:], "version 2, not 1"),
        (KAFKA_S[:20] + b"\xff" + KAFKA_S[21:], "CRC-32C"),
        (bytes(KAFKA_S[:2]) + b"\0\0\0\0" + KAFKA_S[6:], "CRC-32C"),
    ],
)
def test_a_damaged_file_is_found_out(damaged: bytes, message: str) -> None:
    with pytest.raises(CorruptSnapshot, match=rf"^x: .*{message}"):
        decode_snapshot(damaged, "x")


def test_a_count_that_does_not_fit_is_found_out() -> None:
    empty = bytearray(encode_snapshot([]))
    assert decode_snapshot(bytes(empty), "x") == []
    lying = encode_snapshot([ProducerEntry(1)])[:10]
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(bytes(lying), "x")


@given(st.binary(max_size=120), st.booleans())
def test_any_bytes_are_producers_or_an_error(content: bytes, sealed: bool) -> None:
    if sealed and len(content) >= 6:  # past the CRC, to where the count is believed
        content = b"\0\1" + crc32c(content[6:]).to_bytes(4, "big") + content[6:]
    with contextlib.suppress(CorruptSnapshot):
        decode_snapshot(content, "x")


def test_a_snapshot_is_taken_once_an_offset(tmp_path: Path) -> None:
    state = opened(tmp_path)
    assert state.take_snapshot() is None
    wrote(state, 1, 9)
    assert state.take_snapshot() == str(tmp_path / "00000000000000000010.snapshot")
    assert state.take_snapshot() is None
    assert state.latest_snapshot_offset == 10


def test_a_log_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    state = opened(tmp_path)
    wrote(state, 1, 0)
    wrote(state, 2, 1, attributes=TRANSACTIONAL)
    state.take_snapshot()
    again = opened(tmp_path)
    again.truncate_and_reload(0, 2, now_ms=500)
    assert again.end_offset == 2
    assert again.first_unstable_offset == 1
    assert again.check(data_batch(1, 0), Origin.CLIENT) == CachedBatch(0, 0, 0, 500)
    assert again.check(data_batch(1, 1), Origin.CLIENT) is None


def test_open_transactions_are_loaded_in_the_order_of_their_offsets(tmp_path: Path) -> None:
    state = opened(tmp_path)
    wrote(state, 1, 0)
    wrote(state, 2, 1, attributes=TRANSACTIONAL)
    wrote(state, 1, 2, sequence=1, attributes=TRANSACTIONAL)
    state.take_snapshot()
    again = opened(tmp_path)
    again.truncate_and_reload(0, 3, now_ms=500)
    assert again.first_unstable_offset == 1


def test_expired_producers_are_not_loaded(tmp_path: Path) -> None:
    state = opened(tmp_path)
    wrote(state, 1, 0)
    state.take_snapshot()
    again = opened(tmp_path)
    again.truncate_and_reload(0, 1, now_ms=500 + DAY_MS)
    assert not again.producers
    assert again.end_offset == 1


def test_truncation_goes_back_to_the_newest_snapshot_in_range(tmp_path: Path) -> None:
    state = opened(tmp_path)
    for offset in range(3):
        wrote(state, 1, offset, sequence=offset)
        state.take_snapshot()
    state.truncate_and_reload(1, 2, now_ms=500)
    assert snapshots(tmp_path) == [2]
    assert state.end_offset == 2
    assert state.producers[1].last_sequence == 1


def test_a_log_end_that_stays_keeps_the_producers(tmp_path: Path) -> None:
    state = opened(tmp_path)
    for offset in range(3):
        wrote(state, 1, offset, sequence=offset)
    state.truncate_and_reload(1, 3, now_ms=500)
    assert state.producers[1].last_sequence == 2


def test_without_a_snapshot_the_log_is_replayed_from_its_start(tmp_path: Path) -> None:
    state = opened(tmp_path)
    state.truncate_and_reload(5, 9, now_ms=500)
    assert state.end_offset == 5
    assert state.is_empty


def test_a_corrupt_snapshot_gives_way_to_an_older_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = opened(tmp_path)
    wrote(state, 1, 0)
    state.take_snapshot()
    (tmp_path / "00000000000000000007.snapshot").write_bytes(KAFKA_S[:-3])
    again = opened(tmp_path)
    again.truncate_and_reload(0, 9, now_ms=500)
    assert again.end_offset == 1
    assert snapshots(tmp_path) == [1]
    assert "00000000000000000007.snapshot" in caplog.text


def test_truncate_fully_forgets_everything(tmp_path: Path) -> None:
    state = opened(tmp_path)
    wrote(state, 1, 0, attributes=TRANSACTIONAL)
    state.take_snapshot()
    state.truncate_fully(40)
    assert state.is_empty
    assert state.first_unstable_offset is None
    assert state.end_offset == 40
    assert snapshots(tmp_path) == []


@pytest.mark.parametrize(
    ("segments", "left"),
    [
        ([0, 5, 10], [5, 10, 12]),  # 12 is of a clean stop
        ([0, 5, 20], [5]),
        ([], [12]),
        ([3, 5, 10, 12], [3, 5, 10, 12]),
    ],
)
def test_snapshots_without_a_segment_are_strays(tmp_path: Path, segments: list[int], left: list[int]) -> None:
    for offset in (3, 5, 10, 11, 12):
        (tmp_path / f"{offset:020d}.snapshot").write_bytes(encode_snapshot([]))
    opened(tmp_path).remove_stray_snapshots(segments)
    assert snapshots(tmp_path) == left


def test_old_snapshots_go_with_their_segments(tmp_path: Path) -> None:
    for offset in (5, 10):
        (tmp_path / f"{offset:020d}.snapshot").write_bytes(encode_snapshot([]))
    state = opened(tmp_path)
    assert state.set_snapshot_aside(5) == str(tmp_path / "00000000000000000005.snapshot.deleted")
    assert state.set_snapshot_aside(5) is None
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "00000000000000000005.snapshot.deleted",
        "00000000000000000010.snapshot",
    ]


def test_a_log_start_that_moves_keeps_the_producers(tmp_path: Path) -> None:
    state = opened(tmp_path)
    wrote(state, 1, 0)
    state.on_log_start_offset_incremented(30)
    assert state.end_offset == 30
    assert list(state.producers) == [1]


def test_other_files_are_no_snapshots(tmp_path: Path) -> None:
    for name in ("00000000000000000005.snapshot.deleted", "garbage.snapshot", "00000000000000000005.log"):
        (tmp_path / name).write_bytes(b"")
    assert opened(tmp_path).latest_snapshot_offset is None
