"""Tests disks that fill up or fail: no acknowledged record is lost, and either the log continues or its directory goes
offline."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

from protocol.types import TopicPartition
from storage.failure import OUR_OWN, LogDirFailure, LogDirFull, StorageBug, StorageError, failing
from storage.log import Log
from storage.logs import Logs
from tests.storage.bad_disk import BROKEN, FULL, BadDisk, fails
from tests.storage.writing import (
    NOW_MS,
    PID,
    append,
    base_offsets,
    batch,
    config,
    open_log,
    read_all,
    values,
    write,
)


@pytest.fixture
def disk() -> BadDisk:
    return BadDisk()


@pytest.fixture
def log(tmp_path: Path, disk: BadDisk) -> Log:
    return open_log(tmp_path / "orders-0", config(segment_bytes=1000), disk=disk)


@pytest.mark.parametrize("room", [0, 1, 60, 100])
def test_a_full_disk_refuses_an_append_and_leaves_no_trace(log: Log, disk: BadDisk, tmp_path: Path, room: int) -> None:
    write(log, "a")
    size = log.size_bytes
    disk.room = room
    with pytest.raises(LogDirFull) as full:
        append(log, batch("x" * 200, pid=PID))
    assert (full.value.log_dir, full.value.code.name) == (str(tmp_path), "KAFKA_STORAGE_ERROR")
    assert (log.log_end_offset, log.size_bytes) == (1, size)
    assert os.path.getsize(log.segments.active.path) == size
    assert values(read_all(log)) == ["a"]


def test_once_there_is_room_a_full_log_goes_on(log: Log, disk: BadDisk, tmp_path: Path) -> None:
    append(log, batch("a", pid=PID))
    disk.room = 10
    with pytest.raises(LogDirFull):
        append(log, batch("b", pid=PID, sequence=1))
    disk.room = None
    assert append(log, batch("b", pid=PID, sequence=1)).base_offset == 1
    assert values(read_all(open_log(tmp_path / "orders-0", clean=False))) == ["a", "b"]


@pytest.mark.parametrize("call", ["open", "write"])
def test_a_full_disk_refuses_a_roll_and_the_log_goes_on_later(log: Log, disk: BadDisk, call: str) -> None:
    written = ["x" * 400, "y" * 400]
    for value in written:
        write(log, value)
    disk.fault = fails(call, error=FULL)
    for _ in range(2):
        with pytest.raises(LogDirFull):
            write(log, "z" * 400)
    assert values(read_all(log)) == written
    disk.fault = lambda call, path: None
    write(log, "z" * 400)
    assert values(read_all(log)) == [*written, "z" * 400]
    assert base_offsets(log) == [0, 2]


@pytest.mark.parametrize("suffix", [".snapshot", ".index", ".timeindex"])
def test_the_log_goes_on_after_a_roll_that_had_filled_the_time_index(
    tmp_path: Path, disk: BadDisk, suffix: str
) -> None:
    log = open_log(tmp_path / "orders-0", config(segment_index_bytes=48), disk=disk)
    for n in range(6):
        write(log, "a", timestamp=NOW_MS + n)
    assert [entry.timestamp - NOW_MS for entry in log.segments.active.time_index] == [2, 4]  # 5 is for the roll to add
    disk.fault = fails("write", suffix, error=FULL)
    with pytest.raises(LogDirFull):
        log.roll(NOW_MS)
    disk.fault = lambda call, path: None
    for n in range(6, 9):
        write(log, "a", timestamp=NOW_MS + n)
    assert values(read_all(log)) == ["a"] * 9


def test_a_write_error_gives_the_directory_up(log: Log, disk: BadDisk, tmp_path: Path) -> None:
    disk.fault = fails("write", ".log")
    with pytest.raises(LogDirFailure) as failed:
        write(log, "a")
    assert failed.value.log_dir == str(tmp_path)
    assert "appending to orders-0" in failed.value.message
    assert log.log_end_offset == 0


def test_a_failed_fsync_gives_the_directory_up_and_does_not_move_the_recovery_point(log: Log, disk: BadDisk) -> None:
    write(log, "a")
    disk.fault = fails("fsync")
    with pytest.raises(LogDirFailure):
        log.flush(NOW_MS)
    assert log.recovery_point == 0


def test_an_error_of_reading_gives_the_directory_up(log: Log, disk: BadDisk) -> None:
    write(log, "a")
    disk.fault = fails("read")
    with pytest.raises(LogDirFailure):
        log.read(0, 1000)


def test_a_file_that_someone_cut_is_an_error_of_reading(log: Log) -> None:
    write(log, "a", "b")
    os.truncate(log.segments.active.path, 20)
    with pytest.raises(LogDirFailure):
        log.read(0, 1000)
    log.segments.active.sealed = True
    with pytest.raises(LogDirFailure):
        log.read(0, 1000)


def two_disks(tmp_path: Path, disk: BadDisk) -> Logs:
    logs = Logs([str(tmp_path / "good"), str(tmp_path / "bad")], disk=disk, unique=lambda: "0" * 32)
    logs.load(lambda _: config(), NOW_MS)
    for partition in range(4):
        write(logs.create(TopicPartition("orders", partition), None, config(), NOW_MS), "a")
    return logs


def test_the_other_directories_serve_on(tmp_path: Path, disk: BadDisk) -> None:
    logs = two_disks(tmp_path, disk)
    gone = logs.fail(str(tmp_path / "bad"), BROKEN)
    assert [name.partition for name in gone] == [1, 3]
    assert [log.topic_partition.partition for log in logs] == [0, 2]
    assert [log_dir.path for log_dir in logs.online_dirs()] == [str(tmp_path / "good")]
    log = logs.create(TopicPartition("orders", 9), None, config(), NOW_MS)
    assert log.log_dir == str(tmp_path / "good")


def test_a_directory_that_cannot_be_opened_is_offline_from_the_start(tmp_path: Path, disk: BadDisk) -> None:
    two_disks(tmp_path, disk)
    disk.fault = lambda call, path: BROKEN if "/bad/orders-3" in path else None
    logs = Logs([str(tmp_path / "good"), str(tmp_path / "bad")], disk=disk, unique=str)
    logs.load(lambda _: config(), NOW_MS)
    assert [log.topic_partition.partition for log in logs] == [0, 2]
    assert isinstance(logs.dirs[str(tmp_path / "bad")].error, LogDirFailure)


def test_a_directory_that_fails_while_closing_is_not_marked_clean(tmp_path: Path, disk: BadDisk) -> None:
    logs = two_disks(tmp_path, disk)
    disk.fault = lambda call, path: BROKEN if call == "fsync" and "/bad/" in path else None
    logs.close(NOW_MS)
    assert (tmp_path / "good" / ".kafka_cleanshutdown").exists()
    assert not (tmp_path / "bad" / ".kafka_cleanshutdown").exists()


DEVICE = ("EIO", "EROFS", "ENXIO", "ENODEV", "ESTALE", "EUCLEAN", "EACCES", "EPERM", "ENOENT", "ENOTDIR", "ETIMEDOUT")


@pytest.mark.parametrize("name", DEVICE)
def test_what_a_device_says_is_a_failed_directory(name: str) -> None:
    reported: list[StorageError] = []
    with pytest.raises(LogDirFailure), failing("/data", "reading", report=reported.append):
        raise OSError(getattr(errno, name), name)
    assert [type(error) for error in reported] == [LogDirFailure]


@pytest.mark.parametrize("name", sorted(errno.errorcode[number] for number in OUR_OWN))
@pytest.mark.parametrize("may_be_full", [False, True])
def test_a_call_that_the_system_refuses_is_a_bug_and_no_failed_directory(
    name: str, may_be_full: bool, caplog: pytest.LogCaptureFixture
) -> None:
    reported: list[StorageError] = []
    with pytest.raises(StorageBug) as bug, failing("/data", "reading", may_be_full=may_be_full, report=reported.append):
        raise OSError(getattr(errno, name), name)
    assert (bug.value.code.name, reported) == ("UNKNOWN_SERVER_ERROR", [])
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None


def test_an_append_that_the_system_refuses_leaves_no_trace_and_the_log_goes_on(log: Log, disk: BadDisk) -> None:
    write(log, "a")
    size = log.size_bytes
    disk.fault = fails("write", ".log", OSError(errno.EINVAL, "Invalid argument"))
    with pytest.raises(StorageBug):
        append(log, batch("b"))
    assert (log.log_end_offset, log.size_bytes, os.path.getsize(log.segments.active.path)) == (1, size, size)
    disk.fault = lambda call, path: None
    write(log, "b")
    assert values(read_all(log)) == ["a", "b"]


def test_a_flush_that_the_system_refuses_is_tried_again(log: Log, disk: BadDisk) -> None:
    write(log, "a")
    disk.fault = fails("fsync", ".log", OSError(errno.EBADF, "Bad file descriptor"))
    with pytest.raises(StorageBug):
        log.flush(NOW_MS)
    assert log.recovery_point == 0
    disk.fault = lambda call, path: None
    log.flush(NOW_MS)
    assert log.recovery_point == 1


@pytest.mark.parametrize("max_bytes", [-(1 << 31), -1, 0])
def test_a_read_of_no_or_fewer_bytes_is_empty_or_the_first_batch(log: Log, max_bytes: int) -> None:
    write(log, "a", "b")
    write(log, "c")
    for offset in range(log.log_end_offset):
        assert log.read(offset, max_bytes, min_one=False).size_bytes == 0
        assert log.read(offset, max_bytes).size_bytes > 0
        assert log.cold_read(offset, max_bytes) is None
