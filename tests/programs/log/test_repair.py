"""Tests `odradek log repair`: it shows, restores and removes the records that were set aside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import main
from programs.log.repair import Aside
from protocol.errors import ErrorCode
from storage.checkpoint import has_clean_shutdown
from storage.disk import OsDisk
from storage.log import Log
from tests.storage.managing import CONFIG, ID, place, start
from tests.storage.writing import NOW_MS, append, batch, error_of, read_all, values, write

VALUES = [f"{n:040d}" for n in range(9)]
"""Values in five segments."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Returns a log directory whose broker was killed, then started without one of the log's segments, and stopped."""
    directory = tmp_path / "data"
    logs = start(directory)
    log = logs.create(place(0), ID, CONFIG, NOW_MS)
    for value in VALUES:
        write(log, value)
    log.segments.close()
    segments = sorted((directory / "orders-0").glob("*.log"))
    assert [int(file.stem) for file in segments] == [0, 2, 4, 6, 8]
    segments[1].unlink()
    start(directory).close(NOW_MS)
    return directory


def repair(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str]]:
    status = main(["log", "repair", *map(str, arguments)])
    return status, capsys.readouterr().out.splitlines()


def opened(data: Path) -> Log:
    log = start(data).get(place(0))
    assert log is not None
    return log


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.glob("*/*")}


def test_a_dry_run_shows_what_is_set_aside_and_changes_nothing(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(data)
    status, (described, preview, summary) = repair(capsys, data)
    folder = data / "orders-0"
    assert status == 1
    assert described.startswith(
        f"{folder}: set aside 1: 5 records of offsets 4 to 8: {folder}/{0:020d}.log: cut 0 bytes"
    )
    assert preview == (
        f"{folder}: the log ends at offset 2: 5 records of offsets 4 to 8 can be restored; "
        "2 offsets before them stay missing"
    )
    assert summary == "files set aside: 3"
    assert contents(data) == before


@pytest.mark.parametrize("option", ["--restore", "--discard"])
def test_the_metadata_log_is_left_alone(data: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its folder has copies of a topic's segments, one of which was set aside, and a torn end."""
    folder = data / "__cluster_metadata-0"
    shutil.copytree(data / "orders-0", folder)
    shutil.copy(min(folder.glob("*.log.kept")), folder / f"{2:020d}.torn")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert repair(capsys, option, folder) == (0, ["files set aside: none"])
    repair(capsys, option, data)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_what_is_restored_is_served_after_the_next_start_and_the_next_crash(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = repair(capsys, "--restore", data / "orders-0")
    assert (status, lines[-1]) == (0, "files set aside: none")
    assert list(data.glob("*/set-aside-*")) == []
    log = opened(data)  # and never stopped
    assert log.recovered.doubt is None
    assert values(read_all(log)) == VALUES[:2] + VALUES[4:]
    write(log, "after")
    log.segments.close()
    again = opened(data)
    assert values(read_all(again)) == [*VALUES[:2], *VALUES[4:], "after"]
    assert again.recovered.cut is None


LOCK = "import sys; from broker.disks.lock import DirectoryLock; DirectoryLock(sys.argv[1])"
"""A process that starts like a broker; it fails while another process has locked the directory."""


@pytest.mark.parametrize("option", ["--restore", "--discard"])
def test_no_broker_starts_while_files_change(
    data: Path, option: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def try_to_start(aside: Aside, *_: object) -> str:
        started.append(subprocess.run([sys.executable, "-c", LOCK, data], check=False, capture_output=True).returncode)
        return "changed"

    monkeypatch.setattr(Aside, option.removeprefix("--"), try_to_start)
    repair(capsys, option, data / "orders-0")
    assert started == [1]
    assert subprocess.run([sys.executable, "-c", LOCK, data], check=False).returncode == 0


def test_a_crash_while_records_are_restored_is_no_stop_in_order(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert has_clean_shutdown(OsDisk(), str(data))
    monkeypatch.setattr(Log, "flush", crash)
    with pytest.raises(Crash):
        repair(capsys, "--restore", data)
    monkeypatch.undo()
    assert not has_clean_shutdown(OsDisk(), str(data))
    last = max((data / "orders-0").glob("*.log"))
    os.truncate(last, last.stat().st_size - 3)
    log = opened(data)
    write(log, "after")
    assert values(read_all(log))[-1] == "after"


class Crash(Exception):
    """Simulates the end of the process."""


def crash(*_: object) -> None:
    raise Crash


def test_a_log_that_has_gone_on_is_left_as_it_is(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = start(data)
    log = logs.get(place(0))
    assert log is not None
    append(log, batch("newer"), leader_epoch=5)
    logs.close(NOW_MS)
    status, lines = repair(capsys, "--restore", data)
    assert status == 1
    assert "the log ends at offset 3, in leader epoch 5: no records can be restored there" in lines[1]
    assert lines[-1] == "files set aside: 3"
    assert values(read_all(opened(data))) == [*VALUES[:2], "newer"]


def test_a_batch_of_a_damaged_base_offset_is_not_restored(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (last,) = (data / "orders-0").glob(f"*.{8:020d}.log.kept")
    content = bytearray(last.read_bytes())
    content[4] = 1
    last.write_bytes(content)
    status, lines = repair(capsys, "--restore", data)
    assert status == 1
    assert "4 records of offsets 4 to 7 restored" in lines[1]
    assert lines[-1] == "files set aside: 1"
    log = opened(data)
    assert log.log_end_offset == 8
    with error_of(ErrorCode.OFFSET_OUT_OF_RANGE):
        log.read(9, 1)


def test_what_is_discarded_is_gone(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = repair(capsys, "--discard", data)
    assert status == 0
    assert lines[1] == f"{data}/orders-0: removed 5 records of offsets 4 to 8"
    assert list(data.glob("*/set-aside-*")) == []


def test_verify_tells_of_files_set_aside_and_dump_shows_them(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "verify", str(data)]) == 0
    assert "note: " + f"{data}/orders-0: 3 files with records that recovery has set aside" in capsys.readouterr().out
    (file,) = (data / "orders-0").glob(f"*.{4:020d}.log.kept")
    assert main(["log", "dump", str(file)]) == 0
    assert f"value '{VALUES[4]}'" in capsys.readouterr().out


def test_a_directory_without_anything_set_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(tmp_path).close(NOW_MS)
    assert repair(capsys, tmp_path) == (0, ["files set aside: none"])
    assert repair(capsys, tmp_path / "absent") == (2, [])
