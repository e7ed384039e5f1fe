"""Tests records after a damaged batch or a gap: they are cut from the log, and set aside if they can be read."""

from __future__ import annotations

from pathlib import Path
from struct import pack_into

import pytest

from storage.log import Log
from storage.recovering.kept import content_of, kept_files
from storage.recovering.salvage import sound_batches
from tests.storage.writing import (
    DISK,
    NOW_MS,
    append,
    base_offsets,
    batch,
    config,
    end_transaction,
    open_log,
    read_all,
    values,
    write,
)

RECORDS = 100
VALUES = [f"{n:040d}" for n in range(RECORDS)]
JUMP = 1 << 24


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Returns a log of a hundred batches in three segments, whose broker was killed."""
    folder = tmp_path / "orders-0"
    log = open_log(folder, config(segment_bytes=34 * 113))
    for value in VALUES:
        write(log, value)
    assert base_offsets(log) == [0, 34, 68]
    log.segments.close()
    return folder


def recover(directory: Path, **options: object) -> Log:
    return open_log(directory, config(segment_bytes=34 * 113, **options), clean=False)


def size_of_batch(file: Path) -> int:
    return 12 + int.from_bytes(file.read_bytes()[8:12])


def segment(directory: Path, number: int) -> Path:
    return sorted(directory.glob("*.log"))[number]


def set_base_offset(file: Path, batch_number: int, base_offset: int) -> None:
    content = bytearray(file.read_bytes())
    pack_into(">q", content, batch_number * size_of_batch(file), base_offset)
    file.write_bytes(content)


def set_aside(directory: Path) -> list[int]:
    """Returns the base offsets of the batches that were set aside."""
    files = kept_files(str(directory), DISK.listdir(str(directory)))
    return [header.base_offset for file in files for _, header in sound_batches(content_of(DISK, file.path))]


def test_segments_behind_a_gap_are_set_aside(directory: Path) -> None:
    file = segment(directory, 1)
    file.write_bytes(file.read_bytes()[: 17 * size_of_batch(file)])
    log = recover(directory)
    assert values(read_all(log)) == VALUES[:51]
    assert set_aside(directory) == list(range(68, 100))
    assert "32 records of it can be read and are set aside" in str(log.recovered.cut)
    assert f"odradek log repair {directory}" in str(log.recovered.cut)


def test_segments_behind_a_missing_segment_are_set_aside(directory: Path) -> None:
    segment(directory, 1).unlink()
    assert recover(directory).log_end_offset == 34
    assert set_aside(directory) == list(range(68, 100))


def test_batches_behind_a_damaged_batch_are_set_aside_with_those_of_later_segments(directory: Path) -> None:
    file = segment(directory, 1)
    content = bytearray(file.read_bytes())
    content[17 * size_of_batch(file) + 70] ^= 1
    file.write_bytes(content)
    log = recover(directory)
    assert log.log_end_offset == 51
    assert set_aside(directory) == list(range(52, 100))


@pytest.mark.parametrize(("at", "mask"), [(8, 0x40), (10, 1), (16, 1), (11, 3)], ids=["huge", "long", "magic", "short"])
def test_batches_are_found_behind_one_whose_length_or_magic_is_damaged(directory: Path, at: int, mask: int) -> None:
    file = segment(directory, 2)
    content = bytearray(file.read_bytes())
    content[10 * size_of_batch(file) + at] ^= mask
    file.write_bytes(content)
    assert recover(directory).log_end_offset == 78
    assert set_aside(directory) == list(range(79, 100))


def test_a_torn_batch_that_nothing_follows_is_cut_alone(directory: Path) -> None:
    file = segment(directory, 2)
    file.write_bytes(file.read_bytes()[:-5] + bytes(9000))
    assert recover(directory).log_end_offset == 99
    assert list(directory.glob("set-aside-*")) == []


def test_what_is_set_aside_outlives_starts_and_deletions(directory: Path) -> None:
    segment(directory, 1).unlink()
    recover(directory)
    before = {file.name: file.read_bytes() for file in directory.glob("set-aside-*")}
    log = open_log(directory, config(file_delete_delay_ms=0))
    log.truncate_to(10, NOW_MS)
    log.segments.delete_expired(NOW_MS + 10**9)
    log.close()
    recover(directory)
    assert {file.name: file.read_bytes() for file in directory.glob("set-aside-*")} == before
    assert len(before) == 2


def test_what_is_set_aside_twice_has_two_numbers(directory: Path) -> None:
    for _ in range(2):
        file = segment(directory, -1)
        content = bytearray(file.read_bytes())
        content[-2 * size_of_batch(file) + 70] ^= 1
        file.write_bytes(content)
        recover(directory)
    assert sorted(file.name for file in directory.glob("set-aside-*")) == [
        "set-aside-1.00000000000000000098.rest.log.kept",
        "set-aside-1.reason.kept",
        "set-aside-2.00000000000000000096.rest.log.kept",
        "set-aside-2.reason.kept",
    ]


@pytest.mark.parametrize("number", [0, 10, 31], ids=["first", "middle", "last"])
@pytest.mark.parametrize("moved", [JUMP, -50, 3], ids=["far", "back", "near"])
def test_a_damaged_base_offset_never_becomes_the_log_s(directory: Path, number: int, moved: int) -> None:
    set_base_offset(segment(directory, 2), number, 68 + number + moved)
    log = recover(directory)
    assert log.log_end_offset == 68 + number
    assert values(read_all(log)) == VALUES[: 68 + number]
    assert len(set_aside(directory)) == 32 - number


def test_a_base_offset_beyond_the_next_segment_s_is_damaged(directory: Path) -> None:
    set_base_offset(segment(directory, 1), 33, 67 + JUMP)
    log = recover(directory, cleanup_policy="compact")
    assert log.log_end_offset == 67
    assert set_aside(directory) == [67 + JUMP, *range(68, 100)]


def test_gaps_of_compaction_are_no_damage(directory: Path) -> None:
    file = segment(directory, 2)
    size = size_of_batch(file)
    content = file.read_bytes()
    file.write_bytes(content[: 5 * size] + content[7 * size : 20 * size] + content[31 * size :])
    log = recover(directory, cleanup_policy="compact")
    assert log.log_end_offset == 100
    assert log.recovered.cut is None


def test_a_log_that_was_cut_behind_a_clean_stop_is_recovered_and_stops_in_order(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", config(index_interval_bytes=1))
    for n, value in enumerate(VALUES):
        write(log, value, timestamp=NOW_MS + n)
    log.flush(NOW_MS)
    log.close()
    file = segment(tmp_path / "orders-0", 0)
    file.write_bytes(file.read_bytes()[: 50 * size_of_batch(file)])
    again = open_log(tmp_path / "orders-0", config(index_interval_bytes=1), recovery_point=99)
    assert again.log_end_offset == 50
    assert again.recovered.doubt == f"{file}: ends at offset 50, but ended at 100 at the last shutdown"
    write(again, "after", timestamp=NOW_MS)
    again.close()
    assert open_log(tmp_path / "orders-0").recovered.doubt is None


def test_epochs_come_back_from_the_batches_after_a_clean_stop(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for n in range(9):
        append(log, batch("a"), leader_epoch=n // 3)
    log.close()
    expected = log.epochs.entries
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").unlink()
    assert open_log(tmp_path / "orders-0").epochs.entries == expected


def test_a_damaged_timestamp_in_an_index_deletes_no_segment_early(tmp_path: Path) -> None:
    topic_config = config(index_interval_bytes=1, retention_ms=1000)
    log = open_log(tmp_path / "orders-0", topic_config)
    write(log, "a", timestamp=NOW_MS)
    log.roll(NOW_MS)
    write(log, "b", timestamp=NOW_MS)
    log.close()
    file = tmp_path / "orders-0" / f"{0:020d}.timeindex"
    content = bytearray(file.read_bytes())
    pack_into(">q", content, len(content) - 12, 5)
    file.write_bytes(content)
    again = open_log(tmp_path / "orders-0", topic_config)
    again.update_high_watermark(2)
    assert again.apply_retention(NOW_MS + 500) == []
    assert len(again.apply_retention(NOW_MS + 5000)) == 2


def test_an_aborted_transaction_out_of_order_is_found_in_its_index(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for sequence in range(3):
        append(log, batch("t", pid=7, sequence=sequence, transactional=True))
        end_transaction(log, commit=False, pid=7)
    log.close()
    (file,) = (tmp_path / "orders-0").glob("*.txnindex")
    content = bytearray(file.read_bytes())
    pack_into(">q", content, 2 * 34 + 18, JUMP)
    file.write_bytes(content)
    again = open_log(tmp_path / "orders-0")
    assert [entry.last_offset for entry in again.aborted_transactions(0, 9)] == [1, 3, 5]
