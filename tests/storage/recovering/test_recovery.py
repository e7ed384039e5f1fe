"""Tests opening a log after a crash: whole batches remain, incomplete batches are cut, and everything else is
unchanged."""

from __future__ import annotations

import random
from pathlib import Path
from shutil import copytree

import pytest

from protocol.errors import ErrorCode
from storage.log import Log
from storage.recovering.kept import content_of, kept_files
from storage.recovering.salvage import sound_batches
from tests.storage.writing import (
    DISK,
    NOW_MS,
    PID,
    append,
    base_offsets,
    batch,
    config,
    end_transaction,
    error_of,
    headers,
    open_log,
    read_all,
    values,
    write,
)

SMALL = config(segment_bytes=600)


def fill(log: Log, count: int, first: int = 0) -> None:
    for n in range(first, first + count):
        data = batch(f"{n:040d}", f"{n:040d}!", timestamp=NOW_MS + n % 7, pid=PID, sequence=2 * n)
        append(log, data, leader_epoch=n // 8)


def crashed(tmp_path: Path, count: int = 20) -> Path:
    """Returns the folder of a log whose broker was killed."""
    directory = tmp_path / "orders-0"
    fill(open_log(directory, SMALL), count)
    return directory


def recover(directory: Path, recovery_point: int = 0, log_start_offset: int = 0) -> Log:
    return open_log(directory, SMALL, clean=False, recovery_point=recovery_point, log_start_offset=log_start_offset)


def last_file(directory: Path) -> Path:
    return max(directory.glob("*.log"))


def state_of(log: Log) -> tuple[object, ...]:
    """Returns everything about a log that a client can see, or that influences what it will see."""
    producers = {pid: (e.epoch, e.last_batch, e.txn_first_offset) for pid, e in log.producer_state.producers.items()}
    indexes = [(list(s.index), list(s.time_index), list(s.txn_index), s.max_timestamp) for s in log.segments]
    return log.log_start_offset, log.log_end_offset, headers(log), log.epochs.entries, producers, indexes


def test_a_log_that_was_killed_is_recovered_as_it_was(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory, SMALL)
    fill(log, 20)
    append(log, batch("t", pid=7, transactional=True), leader_epoch=2)
    end_transaction(log, commit=False, pid=7, leader_epoch=2)
    append(log, batch("open", pid=7, sequence=1, transactional=True), leader_epoch=2)
    log.segments.active.time_index.maybe_append(*log.segments.active.max_timestamp)  # as a recovered one has it
    recovered = recover(directory)
    assert state_of(recovered) == state_of(log)
    assert recovered.first_unstable_offset == 40  # until the high watermark is known to be beyond the marker
    recovered.update_high_watermark(recovered.log_end_offset)
    assert recovered.first_unstable_offset == log.first_unstable_offset == 42
    assert recovered.recovered.cut is None
    assert recovered.recovered.segments == len(log.segments)


def test_a_torn_tail_is_cut_wherever_it_was_torn(tmp_path: Path) -> None:
    directory = crashed(tmp_path, 9)
    whole = values(read_all(recover(directory)))
    file = last_file(directory)
    content = file.read_bytes()
    base_offset = int(file.stem)
    position, sizes = 0, {0: base_offset}  # good sizes of the file, and the log end offset that each means
    for header in headers(recover(directory)):
        if header.base_offset >= base_offset:
            position += header.size_bytes
            sizes[position] = header.next_offset
    for size in range(len(content) + 1):
        file.write_bytes(content[:size])
        log = recover(directory, recovery_point=base_offset)
        whole_bytes = max(end for end in sizes if end <= size)
        assert log.log_end_offset == sizes[whole_bytes]
        assert values(read_all(log)) == whole[: sizes[whole_bytes]]
        cut = log.recovered.cut
        assert (cut is None) == (whole_bytes == size)
        if cut is not None:
            assert (cut.position, cut.offset, cut.bytes_lost) == (whole_bytes, sizes[whole_bytes], size - whole_bytes)
        assert append(log, batch("new")).base_offset == sizes[whole_bytes]


def test_any_flipped_bit_is_noticed_and_nothing_after_it_is_kept(tmp_path: Path) -> None:
    directory = crashed(tmp_path, 12)
    whole = values(read_all(recover(directory)))
    files = sorted(directory.glob("*.log"))
    chance = random.Random(3)
    for n in range(50):
        copy = copytree(directory, tmp_path / f"copy-{n}")
        file = copy / chance.choice(files).name
        content = bytearray(file.read_bytes())
        at = chance.randrange(len(content))
        content[at] ^= 1 << chance.randrange(8)
        file.write_bytes(content)
        log = recover(copy)
        remaining = values(read_all(log))
        assert remaining == whole[: len(remaining)]
        assert append(log, batch("new")).base_offset == log.log_end_offset - 1


def test_a_cut_says_where_and_why(tmp_path: Path) -> None:
    directory = crashed(tmp_path)
    middle = sorted(directory.glob("*.log"))[2]
    content = bytearray(middle.read_bytes())
    content[-1] ^= 1
    middle.write_bytes(content)
    cut = recover(directory).recovered.cut
    assert cut is not None
    assert (cut.path, cut.segments_lost) == (str(middle), len(list(directory.glob("*.log"))) - 3 + cut.segments_lost)
    assert "CRC" in cut.reason
    assert str(middle) in str(cut)
    assert f"offset {cut.offset}" in str(cut)


def test_zeros_at_the_end_are_cut(tmp_path: Path) -> None:
    directory = crashed(tmp_path)
    whole = values(read_all(recover(directory)))
    with last_file(directory).open("ab") as file:
        file.write(bytes(5000))
    log = recover(directory)
    assert values(read_all(log)) == whole
    assert log.recovered.cut is not None
    assert log.recovered.cut.bytes_lost == 5000


def test_offsets_that_go_backwards_are_cut(tmp_path: Path) -> None:
    directory = crashed(tmp_path, 3)
    file = last_file(directory)
    content = file.read_bytes()
    file.write_bytes(content + content)
    log = recover(directory)
    assert log.log_end_offset == 6
    assert log.recovered.cut is not None


def test_only_what_is_beyond_the_recovery_point_is_scanned(tmp_path: Path) -> None:
    directory = crashed(tmp_path)
    log = recover(directory)
    log.flush(NOW_MS)
    starts = base_offsets(log)
    again = recover(directory, recovery_point=starts[-2] + 1)
    assert again.recovered.segments == 2
    assert state_of(again) == state_of(log)


def test_recovery_does_not_advance_the_recovery_point(tmp_path: Path) -> None:
    log = recover(crashed(tmp_path), recovery_point=5)
    assert log.recovery_point == 5
    log.flush(NOW_MS)
    assert log.recovery_point == log.log_end_offset


def test_a_recovery_point_beyond_the_end_is_taken_back(tmp_path: Path) -> None:
    log = recover(crashed(tmp_path), recovery_point=9999)
    assert log.recovery_point == log.log_end_offset == 40


def test_after_a_clean_stop_nothing_is_scanned(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory, SMALL)
    fill(log, 20)
    log.flush(NOW_MS)
    log.close()
    before = state_of(log)
    reopened = open_log(directory, SMALL, clean=True)
    assert reopened.recovered.segments == 0
    assert reopened.recovery_point == 40
    assert state_of(reopened) == before


def test_a_clean_stop_leaves_a_snapshot_at_the_end(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory, SMALL)
    fill(log, 3)
    log.close()
    assert (directory / f"{6:020d}.snapshot").exists()


@pytest.mark.parametrize("extension", ["index", "timeindex"])
def test_a_missing_index_is_made_anew_even_after_a_clean_stop(tmp_path: Path, extension: str) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory, SMALL)
    fill(log, 20)
    log.flush(NOW_MS)
    log.close()
    before = state_of(log)
    for file in directory.glob(f"*.{extension}"):
        file.unlink()
    reopened = open_log(directory, SMALL, clean=True)
    assert state_of(reopened) == before
    assert len(reopened.recovered.rebuilt) == len(reopened.segments)


@pytest.mark.parametrize("damage", [b"\xff" * 7, b"\0" * 16])
def test_a_damaged_index_of_the_active_segment_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory)
    fill(log, 20)
    log.flush(NOW_MS)
    log.close()
    before = state_of(log)
    with max(directory.glob("*.index")).open("ab") as file:
        file.write(damage)
    assert state_of(open_log(directory, clean=True)) == before


def test_a_damaged_transaction_index_is_made_anew(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory)
    append(log, batch("t", pid=7, transactional=True))
    end_transaction(log, commit=False, pid=7)
    log.flush(NOW_MS)
    log.close()
    (file,) = directory.glob("*.txnindex")
    file.write_bytes(file.read_bytes() + b"torn")
    assert [entry.first_offset for entry in open_log(directory).aborted_transactions(0, 9)] == [0]


def test_an_index_without_its_segment_goes(tmp_path: Path) -> None:
    directory = crashed(tmp_path)
    for extension in ("index", "timeindex", "txnindex"):
        (directory / f"{7:020d}.{extension}").write_bytes(bytes(24))
    recover(directory)
    assert list(directory.glob(f"{7:020d}.*")) == []


def test_damaged_epochs_come_back_from_the_batches(tmp_path: Path) -> None:
    directory = crashed(tmp_path)
    expected = recover(directory).epochs.entries
    (directory / "leader-epoch-checkpoint").write_text("garbage\n")
    assert recover(directory).epochs.entries == expected


def test_a_damaged_snapshot_is_made_up_for_by_reading_more_of_the_log(tmp_path: Path) -> None:
    directory = crashed(tmp_path)
    log = recover(directory)
    log.flush(NOW_MS)
    expected = state_of(log)
    for file in directory.glob("*.snapshot"):
        file.write_bytes(b"garbage")
    assert state_of(recover(directory, recovery_point=39)) == expected


def test_snapshots_of_no_segment_go_but_for_the_newest(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory, SMALL)
    fill(log, 20)
    log.close()
    (directory / f"{1:020d}.snapshot").write_bytes((directory / f"{40:020d}.snapshot").read_bytes())
    open_log(directory, SMALL)
    assert not (directory / f"{1:020d}.snapshot").exists()
    assert (directory / f"{40:020d}.snapshot").exists()


def test_producers_go_on_after_a_crash(tmp_path: Path) -> None:
    log = recover(crashed(tmp_path))
    assert append(log, batch(f"{19:040d}", f"{19:040d}!", pid=PID, sequence=38)).duplicate
    with error_of(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(log, batch("gap", pid=PID, sequence=41))
    append(log, batch("next", pid=PID, sequence=40))


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    log = recover(crashed(tmp_path), log_start_offset=7)
    assert log.log_start_offset == 7
    assert read_all(log)[0].offset == 7


def test_a_log_that_ends_before_its_start_begins_anew(tmp_path: Path) -> None:
    log = recover(crashed(tmp_path), log_start_offset=1000)
    assert (log.log_start_offset, log.log_end_offset, base_offsets(log)) == (1000, 1000, [1000])
    assert write(log, "a").base_offset == 1000
    path = tmp_path / "orders-0"
    set_aside = [content_of(DISK, file.path) for file in kept_files(str(path), DISK.listdir(str(path)))]
    assert [header.next_offset for content in set_aside for _, header in sound_batches(content)] == list(
        range(2, 42, 2)
    )
    assert "the log ends at offset 40, before its start at 1000" in str(log.recovered.cut)
    assert "40 records of it can be read and are set aside" in str(log.recovered.cut)


def test_a_crash_right_after_a_roll_leaves_an_empty_segment(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory, SMALL)
    fill(log, 2)
    log.roll(NOW_MS)
    recovered = recover(directory)
    assert base_offsets(recovered) == [0, 4]
    assert write(recovered, "a").base_offset == 4


def test_recovery_twice_is_recovery_once(tmp_path: Path) -> None:
    directory = crashed(tmp_path)
    with last_file(directory).open("ab") as file:
        file.write(b"torn")
    first = recover(directory)
    second = recover(directory)
    assert state_of(first) == state_of(second)
    assert second.recovered.cut is None


@pytest.mark.parametrize("damage", [bytes(8) * 3, b"\x00\x00\x00\x02\x00\x00\x00\x07", b"\xff" * 24, b"torn"])
def test_a_damaged_index_of_a_sealed_segment_is_made_anew_when_it_leads_astray(tmp_path: Path, damage: bytes) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory, SMALL)
    fill(log, 20)
    log.flush(NOW_MS)
    log.close()
    whole = values(read_all(log))
    (directory / f"{0:020d}.index").write_bytes(damage)
    reopened = open_log(directory, SMALL, clean=True)
    assert [values(read_all(reopened, offset)) for offset in range(8)] == [whole[offset:] for offset in range(8)]
