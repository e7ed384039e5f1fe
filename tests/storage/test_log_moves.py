"""Tests logs that are being moved to another directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.log_table import DuplicateLog
from tests.storage.managing import contents, create, folders, place, start
from tests.storage.writing import NOW_MS, open_log, write


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "one", tmp_path / "two"


def test_a_log_moves_to_another_directory(disks: tuple[Path, Path]) -> None:
    logs = start(*disks)
    written = [f"{n}" * 100 for n in range(10)]
    create(logs, 0, *written)
    log = logs.get(place(0))
    assert log is not None
    log.advance_log_start(3)
    logs.create_future(place(0), str(disks[1]), NOW_MS)
    steps = 0
    while not logs.copy_to_future(place(0), NOW_MS, max_bytes=300):
        steps += 1
    assert steps > 2
    moved = logs.swap_future(place(0), NOW_MS)
    assert (moved.log_dir, moved.log_start_offset) == (str(disks[1]), 3)
    assert contents(logs, 0) == written[3:]
    write(moved, "more")
    assert folders(disks[1]) == ["orders-0"]
    logs.delete_expired(NOW_MS + 60_000)
    assert folders(disks[0]) == []
    logs.close(NOW_MS)
    assert contents(start(*disks), 0) == [*written[3:], "more"]


def test_a_log_that_moves_keeps_the_epochs_in_which_nothing_was_written_yet(disks: tuple[Path, Path]) -> None:
    logs = start(*disks)
    create(logs, 0, "a")
    log = logs.get(place(0))
    assert log is not None
    log.assign_leader_epoch(7, 1)
    log.assign_leader_epoch(9, 1)
    epochs = log.epochs.entries
    logs.create_future(place(0), str(disks[1]), NOW_MS)
    logs.copy_to_future(place(0), NOW_MS)
    moved = logs.swap_future(place(0), NOW_MS)
    assert (moved.epochs.entries, moved.last_leader_epoch) == (epochs, 9)


def test_a_move_goes_on_after_a_restart(disks: tuple[Path, Path]) -> None:
    logs = start(*disks)
    create(logs, 0, "a", "b")
    logs.create_future(place(0), str(disks[1]), NOW_MS)
    logs.copy_to_future(place(0), NOW_MS, max_bytes=1)
    again = start(*disks)
    future = again.future(place(0))
    assert future is not None
    assert future.log_end_offset == 1
    assert again.sizes(str(disks[1]))[0].is_future
    assert again.copy_to_future(place(0), NOW_MS)
    again.swap_future(place(0), NOW_MS)
    assert contents(again, 0) == ["a", "b"]


def test_a_move_can_be_called_off(disks: tuple[Path, Path]) -> None:
    logs = start(*disks)
    create(logs, 0, "a")
    logs.create_future(place(0), str(disks[1]), NOW_MS)
    logs.cancel_future(place(0), NOW_MS)
    logs.delete_expired(NOW_MS + 60_000)
    assert folders(disks[1]) == []
    assert contents(logs, 0) == ["a"]


def test_the_same_partition_in_two_directories_is_for_someone_to_sort_out(disks: tuple[Path, Path]) -> None:
    for directory in disks:
        open_log(directory / "orders-0")
    with pytest.raises(DuplicateLog, match="orders-0 is both in"):
        start(*disks)
