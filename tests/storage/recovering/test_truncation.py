"""Tests truncation: a follower removes the records that its leader doesn't have."""

from __future__ import annotations

from contextlib import suppress
from itertools import count, product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, TypeVar

import pytest

from protocol.errors import ErrorCode
from storage.failure import LogDirFailure, LogDirFull
from storage.log import Log
from storage.segment.segments import Segments
from tests.simulation.faulty_disk import Crash, FaultyDisk
from tests.storage.bad_disk import BROKEN, BadDisk
from tests.storage.writing import (
    NOW_MS,
    PID,
    append,
    base_offsets,
    batch,
    config,
    end_transaction,
    error_of,
    open_log,
    read_all,
    values,
    write,
)

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

T = TypeVar("T")
SMALL = config(segment_bytes=500)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path / "orders-0", config(segment_bytes=500))


def fill(log: Log, count: int) -> list[str]:
    written = [f"{n:050d}" for n in range(count)]
    for value in written:
        write(log, value)
    return written


@pytest.mark.parametrize("offset", range(21))
def test_what_is_before_the_offset_stays_and_the_log_goes_on_there(log: Log, offset: int) -> None:
    written = fill(log, 20)
    assert log.truncate_to(offset, NOW_MS) == (offset < 20)
    assert log.log_end_offset == offset
    assert values(read_all(log)) == written[:offset]
    assert write(log, "new").base_offset == offset
    assert values(read_all(log)) == [*written[:offset], "new"]


def test_the_truncated_log_is_what_a_restart_finds(log: Log, tmp_path: Path) -> None:
    written = fill(log, 20)
    log.truncate_to(7, NOW_MS)
    for clean in (False, True):
        reopened = open_log(tmp_path / "orders-0", log.config, clean=clean)
        assert values(read_all(reopened)) == written[:7]
        reopened.close()


def test_the_recovery_point_does_not_stay_beyond_the_end(log: Log) -> None:
    fill(log, 20)
    log.flush(NOW_MS)
    log.truncate_to(7, NOW_MS)
    assert log.recovery_point == 7


def test_epochs_beyond_the_end_are_forgotten(log: Log) -> None:
    append(log, batch("a"), leader_epoch=1)
    append(log, batch("b"), leader_epoch=2)
    log.truncate_to(1, NOW_MS)
    assert log.epochs.latest_epoch == log.last_leader_epoch == 1
    append(log, batch("b"), leader_epoch=2)
    assert log.epochs.latest_epoch == 2


def test_an_epoch_in_which_nothing_was_written_is_forgotten_and_may_begin_again(log: Log) -> None:
    append(log, batch("a"), leader_epoch=1)
    log.assign_leader_epoch(2, 1)
    log.truncate_to(1, NOW_MS)
    assert log.last_leader_epoch == 1
    append(log, batch("b"), leader_epoch=2)
    assert [tuple(entry) for entry in log.epochs.entries] == [(1, 0), (2, 1)]


def test_producers_are_as_they_were_at_that_offset(log: Log) -> None:
    for sequence in range(10):
        append(log, batch("x" * 50, pid=PID, sequence=sequence))
    log.truncate_to(4, NOW_MS)
    with error_of(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(log, batch("a", pid=PID, sequence=10))
    assert append(log, batch("a", pid=PID, sequence=4)).base_offset == 4


def test_an_aborted_transaction_whose_marker_is_taken_back_is_open_again(log: Log) -> None:
    append(log, batch("a", pid=PID, transactional=True))
    end_transaction(log, commit=False)
    log.truncate_to(1, NOW_MS)
    assert log.aborted_transactions(0, 10) == []
    assert log.first_unstable_offset == 0


def test_an_aborted_transaction_before_the_offset_stays_known(log: Log) -> None:
    append(log, batch("a", pid=PID, transactional=True))
    end_transaction(log, commit=False)
    write(log, "b")
    log.truncate_to(2, NOW_MS)
    assert [aborted.first_offset for aborted in log.aborted_transactions(0, 10)] == [0]


def test_a_log_can_begin_anew_anywhere(log: Log) -> None:
    fill(log, 20)
    log.truncate_fully(5000, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, base_offsets(log)) == (5000, 5000, [5000])
    assert write(log, "a").base_offset == 5000
    assert values(read_all(log)) == ["a"]


def test_truncation_below_the_first_segment_begins_anew(log: Log) -> None:
    log.truncate_fully(100, NOW_MS)
    fill(log, 5)
    log.truncate_to(50, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)


def test_files_of_dropped_segments_are_removed_after_their_delay(log: Log, tmp_path: Path) -> None:
    fill(log, 20)
    log.truncate_to(1, NOW_MS)
    set_aside = list((tmp_path / "orders-0").glob("*.log.deleted"))
    assert set_aside
    log.segments.delete_expired(NOW_MS + 59_999)
    assert all(path.exists() for path in set_aside)
    log.segments.delete_expired(NOW_MS + 60_000)
    assert list((tmp_path / "orders-0").glob("*.deleted")) == []


@pytest.mark.source_only
def test_a_flush_that_a_truncation_overtakes_does_not_move_the_recovery_point(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, 20)

    def truncate_and_write(*_: object) -> None:
        log.truncate_to(3, NOW_MS)
        fill(log, 10)

    monkeypatch.setattr(Segments, "flush", truncate_and_write)
    log.flush(NOW_MS)
    assert log.recovery_point == 0


@pytest.mark.parametrize("renames", range(6))
def test_a_crash_in_the_middle_leaves_a_log_without_a_gap(tmp_path: Path, renames: int) -> None:
    disk, calls = BadDisk(), count()
    log = open_log(tmp_path / "orders-0", config(segment_bytes=500), disk=disk)
    written = fill(log, 20)
    disk.fault = lambda call, path: BROKEN if call == "rename" and next(calls) == renames else None
    with pytest.raises(LogDirFailure):
        log.truncate_to(5, NOW_MS)
    reopened = open_log(tmp_path / "orders-0", log.config, clean=False)
    assert values(read_all(reopened)) == written[: reopened.log_end_offset]
    assert reopened.log_end_offset >= 5


@pytest.mark.parametrize("room", [0, 100])
def test_a_full_disk_truncates_nothing_and_a_later_attempt_does(tmp_path: Path, room: int) -> None:
    disk = BadDisk()
    log = open_log(tmp_path / "orders-0", config(segment_bytes=500), disk=disk)
    written = fill(log, 20)
    before = sorted(path.name for path in (tmp_path / "orders-0").iterdir())
    disk.room = room
    with pytest.raises(LogDirFull):
        log.truncate_to(7, NOW_MS, may_be_full=True)
    assert (log.log_end_offset, values(read_all(log))) == (20, written)
    assert sorted(path.name for path in (tmp_path / "orders-0").iterdir()) == before
    disk.room = None
    assert log.truncate_to(7, NOW_MS, may_be_full=True)
    assert values(read_all(log)) == written[:7]


class Forgetful(Random):
    """A disk that loses everything that was not flushed when the power fails."""

    def choice(self, seq: SupportsLenAndGetItem[T]) -> T:
        return seq[0]

    def randint(self, a: int, b: int) -> int:
        return a

    def random(self) -> float:
        return 0.99


def killed_at(call: int, call_of_start: int | None, offset: int, recovery_point: int) -> tuple[list[str], list[str]]:
    """Returns the values of a log after a truncation and a start that were killed at these calls, and the values after
    another start that follows a power loss."""
    disk, directory = FaultyDisk(Forgetful()), Path("/data/orders-0")
    disk.mkdir("/data")
    disk.fsync_dir("/")

    def start() -> list[str]:
        reopened = open_log(directory, SMALL, disk=disk, clean=False, recovery_point=recovery_point)
        return values(read_all(reopened))

    log = open_log(directory, SMALL, disk=disk)
    fill(log, 12)
    log.flush(NOW_MS)
    disk.crash_at = disk.calls + call
    with suppress(Crash):
        log.truncate_to(offset, NOW_MS)
    disk.crash(power=False)
    if call_of_start is not None:
        disk.crash_at = disk.calls + call_of_start
        with suppress(Crash):
            start()
        disk.crash(power=False)
    reopened = start()
    disk.crash(power=True)
    return reopened, start()


@pytest.mark.parametrize("recovery_point", [0, 9, 11])
@pytest.mark.parametrize("offset", [0, 1, 4, 6, 9, 10, 11])
def test_what_a_start_after_a_cut_short_truncation_finds_gone_does_not_come_back(
    offset: int, recovery_point: int
) -> None:
    for call in range(32):
        reopened, afterwards = killed_at(call, None, offset, recovery_point)
        assert afterwards == reopened, f"killed at call {call}"


@pytest.mark.parametrize("offset", [6, 11])
def test_nor_does_it_when_that_start_was_cut_short_too(offset: int) -> None:
    for call, call_of_start in product(range(0, 27, 2), range(5, 50, 3)):
        reopened, afterwards = killed_at(call, call_of_start, offset, 9)
        assert afterwards == reopened, f"killed at calls {call} and {call_of_start}"
