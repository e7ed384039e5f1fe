"""Tests that reads of data that isn't in memory are detected before they are made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.disk import OsDisk
from storage.log import Log
from tests.storage.writing import DISK, NOW_MS, config, open_log, write

PAGE = 4096


class SlowDisk(OsDisk):
    """A disk whose data is in memory only after it was read ahead."""

    __slots__ = ("ahead", "checked")

    def __init__(self) -> None:
        super().__init__()
        self.checked: list[tuple[int, int]] = []
        self.ahead: list[tuple[int, int]] = []

    def is_resident(self, handle: int, offset: int, size_bytes: int) -> bool:
        self.checked.append((offset, size_bytes))
        return (offset, size_bytes) in self.ahead

    def read_ahead(self, handle: int, offset: int, size_bytes: int) -> None:
        self.ahead.append((offset, size_bytes))


@pytest.fixture
def disk() -> SlowDisk:
    return SlowDisk()


@pytest.fixture
def log(tmp_path: Path, disk: SlowDisk) -> Log:
    log = open_log(tmp_path / "orders-0", config(index_interval_bytes=50), disk=disk)
    for value in "abcdef":
        write(log, value)
    return log


def test_what_was_appended_lately_is_not_asked_about(log: Log, disk: SlowDisk) -> None:
    assert log.cold_read(0, 1000) is None
    assert disk.checked == []


def test_a_sealed_segment_that_is_not_in_memory_is_read_ahead(log: Log, disk: SlowDisk) -> None:
    log.roll(NOW_MS)
    write(log, "g")
    cold = log.cold_read(3, 100)
    assert cold is not None
    cold.read_ahead()
    assert log.cold_read(3, 100) is None
    index, batches = disk.checked[-2:]
    assert index[0] == 0
    assert 0 < batches[0] <= log.size_bytes


def test_nothing_is_cold_beyond_the_ends(log: Log) -> None:
    log.roll(NOW_MS)
    assert log.cold_read(6, 100) is None
    assert log.cold_read(-1, 100) is None


def test_a_segment_that_retention_has_taken_needs_no_reading(log: Log) -> None:
    log.roll(NOW_MS)
    cold = log.cold_read(0, 100)
    assert cold is not None
    log.delete_segments([log.segments.first], NOW_MS)
    for path in Path(log.directory).glob("*.deleted"):
        path.unlink()
    cold.read_ahead()


def test_what_the_system_has_read_ahead_is_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(64 * PAGE))
    handle = DISK.open(str(path))
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)  # which a file system in memory does not do
    DISK.read_ahead(handle, 0, 64 * PAGE)
    assert DISK.is_resident(handle, 0, 64 * PAGE)
    DISK.close(handle)
