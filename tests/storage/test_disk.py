"""Tests the operating system's files, as storage uses them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from storage.disk import OsDisk


@pytest.fixture
def disk() -> OsDisk:
    return OsDisk()


@pytest.fixture
def handle(disk: OsDisk, tmp_path: Path) -> int:
    return disk.open(str(tmp_path / "file"), create=True)


def test_buffers_are_written_one_after_the_other(disk: OsDisk, handle: int) -> None:
    assert disk.pwritev(handle, [b"one", bytearray(b"two"), memoryview(b"three")], 2) == 11
    assert disk.pread(handle, 100, 0) == b"\0\0onetwothree"


def test_nothing_to_write_is_fine(disk: OsDisk, handle: int) -> None:
    assert disk.pwritev(handle, [], 0) == 0
    assert disk.pwritev(handle, [b""], 0) == 0
    assert disk.size(handle) == 0


@pytest.mark.parametrize("first", [0, 1, 3, 4, 7])
def test_a_short_write_is_continued(disk: OsDisk, handle: int, monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    def short(fd: int, buffers: list[bytes], offset: int) -> int:
        return os.pwrite(fd, b"".join(buffers)[:first], offset)

    monkeypatch.setattr(os, "pwritev", short)
    assert disk.pwritev(handle, [b"abc", b"", b"defgh"], 5) == 8
    assert disk.pread(handle, 100, 5) == b"abcdefgh"


def test_more_buffers_than_one_call_takes_are_all_written(disk: OsDisk, handle: int) -> None:
    disk.pwritev(handle, [b"%04d" % n for n in range(3000)], 0)
    assert disk.pread(handle, 4, 4 * 2999) == b"2999"
    assert disk.size(handle) == 12000


def test_a_read_ends_with_the_file(disk: OsDisk, handle: int) -> None:
    disk.pwritev(handle, [b"abc"], 0)
    assert disk.pread(handle, 10, 1) == b"bc"
    assert disk.pread(handle, 10, 3) == b""


def test_a_mapping_shows_later_writes_and_outlives_handle_and_name(disk: OsDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "mapped")
    handle = disk.open(path, create=True)
    disk.pwritev(handle, [b"before"], 0)
    view = disk.mmap(handle, 6)
    disk.pwritev(handle, [b"after!"], 0)
    disk.close(handle)
    disk.unlink(path)
    assert bytes(view) == b"after!"
    assert view.readonly


def test_a_mapping_that_let_go_of_its_pages_is_read_as_before(disk: OsDisk, handle: int) -> None:
    disk.pwritev(handle, [b"records"], 0)
    view = disk.mmap(handle, 7)
    part = view[2:]
    disk.unload(view)
    assert (bytes(view), bytes(part)) == (b"records", b"cords")


def test_files_and_directories_are_for_their_owner_only(disk: OsDisk, tmp_path: Path) -> None:
    disk.mkdir(str(tmp_path / "a" / "b"), parents=True)
    disk.mkdir(str(tmp_path / "a" / "b"))
    disk.write_file(str(tmp_path / "a" / "b" / "c"), b"x")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b" / "c").stat().st_mode) == 0o600


def test_a_directory_is_not_made_over_a_file(disk: OsDisk, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileExistsError):
        disk.mkdir(str(tmp_path / "file"))


def test_an_atomic_write_replaces_the_file_and_leaves_nothing_else(disk: OsDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    disk.write_atomically(path, b"a longer content")
    disk.write_atomically(path, b"short")
    assert disk.read_file(path) == b"short"
    assert disk.listdir(str(tmp_path)) == ["checkpoint"]


def test_what_is_not_there_is_none_or_an_error(disk: OsDisk, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert disk.stat(missing) is None
    assert not disk.exists(missing)
    disk.unlink(missing, missing_ok=True)
    disk.rmtree(missing)
    with pytest.raises(FileNotFoundError):
        disk.unlink(missing)
    with pytest.raises(FileNotFoundError):
        disk.read_file(missing)


def test_stat_tells_size_time_and_kind(disk: OsDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    disk.write_file(path, b"12345", sync=False)
    disk.set_modified(path, 1_500_000_000_123)
    assert disk.stat(path) == (5, 1_500_000_000_123, False)
    directory = disk.stat(str(tmp_path))
    assert directory is not None
    assert directory.is_directory


def test_a_tree_is_removed_whole(disk: OsDisk, tmp_path: Path) -> None:
    disk.mkdir(str(tmp_path / "a" / "b"), parents=True)
    disk.write_file(str(tmp_path / "a" / "b" / "c"), b"x", sync=False)
    disk.rmtree(str(tmp_path / "a"))
    assert disk.listdir(str(tmp_path)) == []


def test_the_volume_has_room(disk: OsDisk, tmp_path: Path) -> None:
    space = disk.space(str(tmp_path))
    assert 0 < space.usable_bytes <= space.total_bytes
