"""Tests the lock of a log directory: one process has it, and it leaves no files in a directory that stays empty."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from broker.disks.lock import LOCK_FILE, DirectoryInUse, DirectoryLock


def test_a_directory_that_the_lock_made_goes_with_it(tmp_path: Path) -> None:
    lock = DirectoryLock(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b" / LOCK_FILE).exists()
    lock.release()
    assert not (tmp_path / "a").exists()
    assert tmp_path.exists()


def test_a_directory_that_was_there_stays_as_it_was(tmp_path: Path) -> None:
    DirectoryLock(str(tmp_path)).release()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / LOCK_FILE).touch()
    DirectoryLock(str(tmp_path)).release()
    assert [path.name for path in tmp_path.iterdir()] == [LOCK_FILE]


def test_a_directory_that_is_used_keeps_its_lock_file(tmp_path: Path) -> None:
    lock = DirectoryLock(str(tmp_path / "data"))
    (tmp_path / "data" / "meta.properties").touch()
    lock.release()
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [LOCK_FILE, "meta.properties"]


def test_a_lock_file_that_was_replaced_meanwhile_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process releases its lock, and deletes the file, between the open and the lock of this process."""
    import fcntl

    def replaced(_descriptor: int, _how: int) -> None:
        (tmp_path / LOCK_FILE).unlink()
        (tmp_path / LOCK_FILE).touch()

    monkeypatch.setattr(fcntl, "lockf", replaced)
    with (tmp_path / LOCK_FILE).open("w"), pytest.raises(DirectoryInUse):
        DirectoryLock(str(tmp_path))


@pytest.mark.parametrize("below", ["", "/data"])
def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path, below: str) -> None:
    file = tmp_path / "file"
    file.touch()
    command = [sys.executable, "-m", "odradek", "run", "--listen", "127.0.0.1:0", "--data", f"{file}{below}"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert f"data directory {file}{below}: " in refused.stderr
    assert "expected a directory that the broker's user can write to, or can create" in refused.stderr
    assert "Errno" not in refused.stderr


def test_a_broker_whose_port_is_in_use_leaves_no_directory(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [sys.executable, "-m", "odradek", "run", "--listen", address, "--data", str(tmp_path / "data")]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert "cannot start" in refused.stderr
    assert f"cannot listen on {address}: Address already in use" in refused.stderr
    assert "Errno" not in refused.stderr
    assert not (tmp_path / "data").exists()
