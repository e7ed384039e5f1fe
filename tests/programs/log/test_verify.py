"""The findings of `odradek log verify`."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from broker.disks.lock import DirectoryLock
from cli.main import main
from programs.log.progress import Progress
from storage.logs import Logs
from tests.clock import ManualClock
from tests.storage.cleaning import put
from tests.storage.managing import ID, place, start
from tests.storage.writing import NOW_MS, PID, config, end_transaction, write

Damage = Callable[[Path], None]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Returns a log directory with two partitions of several segments, which were closed cleanly."""
    logs = start(tmp_path / "data")
    fill(logs)
    logs.close(NOW_MS)
    return tmp_path / "data"


def fill(logs: Logs) -> None:
    for number in range(2):
        log = logs.create(place(number), ID, config(segment_bytes=600, index_interval_bytes=1), NOW_MS)
        for n in range(12):
            write(log, f"value {n}", timestamp=NOW_MS + n)
        put(log, ("a", "1"), pid=PID, transactional=True)
        end_transaction(log, commit=False)


def verified(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str]]:
    status = main(["log", "verify", *map(str, arguments)])
    return status, capsys.readouterr().out.splitlines()


def test_a_log_directory_may_have_the_name_of_a_partition_folder(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = data.rename(data.with_name("broker-1"))
    (data / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=b2RyYWRlay1pbnRlcm9wLg\n")
    status, output = verified(capsys, data)
    assert status == 0
    assert output[-1].startswith("2 partitions, ")


def test_a_partition_without_a_segment_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    status, output = verified(capsys, folder)
    assert status == 0
    assert f"note: {folder}: has no segment" in output


def test_a_sound_directory(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, output = verified(capsys, data, "--deep")
    assert status == 0
    assert output[:-1] == [f"note: {data}: meta.properties is missing: the directory was never formatted"]
    assert output[-1].startswith("2 partitions, 4 segments, 28 batches")
    assert output[-1].endswith(": no problems")


def overwrite(name: str, at: int, content: bytes) -> Damage:
    def damage(folder: Path) -> None:
        file = folder / name
        data = bytearray(file.read_bytes())
        data[at : at + len(content)] = content
        file.write_bytes(data)

    return damage


def cut(name: str, size: int) -> Damage:
    def damage(folder: Path) -> None:
        file = folder / name
        file.write_bytes(file.read_bytes()[:-size])

    return damage


FIRST = f"{0:020d}"


@pytest.mark.parametrize(("damage", "problem"), [
    (overwrite(f"{FIRST}.log", 70, b"\xff"), "byte 0: a record batch's CRC-32C"),
    (overwrite(f"{FIRST}.log", 78 + 8, pack(">i", -1)), "byte 78: the batch at byte 78 says that its length is -1"),
    (overwrite(f"{FIRST}.log", 78, pack(">q", 0)), "byte 78: a batch of offsets 0 to 0, but 1 is next"),
    (overwrite(f"{FIRST}.log", 78 + 4, b"\x01"), "byte 78: a batch of offsets 16777217 to 16777217, but 1 is next"),
    (overwrite(f"{7:020d}.log", 4, b"\x01"), "byte 0: a batch of offsets 16777223 to 16777223, but 7 is next"),
    (cut(f"{FIRST}.log", 3), "are not a whole batch"),
    (cut(f"{FIRST}.index", 3), "is not a multiple of an entry's 8"),
    (overwrite(f"{FIRST}.index", 4, pack(">i", 77)), "offset 1 at byte 77: no batch with it starts there"),
    (overwrite(f"{FIRST}.timeindex", 0, pack(">q", NOW_MS - 9)), f"has {NOW_MS - 9} up to offset 1"),
    (cut(f"{FIRST}.timeindex", 12), "but the segment's largest"),
    (overwrite(f"{14:020d}.snapshot", 12, b"\xff"), "CRC-32C is"),
    (overwrite("partition.metadata", 0, b"nonsense"), "line 1"),
    (overwrite("leader-epoch-checkpoint", 0, b"9"), "line 1"),
    (overwrite("../recovery-point-offset-checkpoint", 2, b"7"), "line 2: '7' is not the number of entries"),
    (lambda folder: (folder / f"{FIRST}.log").unlink(), f"is the index of {FIRST}.log, which is missing"),
    (lambda folder: (folder / f"{FIRST}.log").unlink() or (folder / f"{FIRST}.log").mkdir(), "cannot be read"),
    (lambda folder: (folder / "../bootstrap.checkpoint").write_bytes(b"x"), "bootstrap.checkpoint has no footer"),
])  # fmt: skip
def test_damage_is_found(data: Path, damage: Damage, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    damage(data / "orders-0")
    status, output = verified(capsys, data)
    assert status == 1
    problems = [line for line in output[:-1] if not line.startswith("note: ")]
    assert problems
    assert problem in problems[0]
    assert output[-1].endswith(f": {len(problems)} problem{'s' * (len(problems) > 1)}")


def test_one_damaged_batch_is_one_problem(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The batches after it are verified too, and an index that points to it is not reported."""
    for number in (1, 3):
        overwrite(f"{FIRST}.log", 78 * number + 70, b"\xff")(data / "orders-0")
    output = verified(capsys, data)[1]
    assert output[-1].endswith(": 2 problems")
    assert output[-1].startswith("2 partitions, 4 segments, 28 batches")


def test_a_partition_alone(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overwrite(f"{FIRST}.log", 70, b"\xff")(data / "orders-1")
    assert verified(capsys, data / "orders-0")[0] == 0
    assert verified(capsys, data / "orders-1")[0] == 1


def test_what_the_next_start_puts_right_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = start(tmp_path)
    fill(logs)
    log = logs.get(place(0))
    assert log is not None
    active = Path(log.segments.active.path)
    active.write_bytes(active.read_bytes() + b"torn")
    (tmp_path / "cleaner-offset-checkpoint").touch()
    (active.parent / f"{FIRST}.log.cleaned").write_bytes(b"unfinished")
    status, output = verified(capsys, tmp_path)
    assert status == 0
    assert any("4 bytes from" in line and line.startswith("note: ") for line in output)
    assert any("about to be added or deleted: 1" in line for line in output)
    assert any("is empty" in line and line.startswith("note: ") for line in output)
    assert any("was not shut down cleanly" in line for line in output)


def test_data_in_use_and_directories_that_are_not_there_are_refused(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["log", "verify", str(data / "absent")]) == 2
    monkeypatch.setattr("programs.log.commands.in_use", lambda path: True)
    assert main(["log", "verify", str(data)]) == 2
    assert "in use by a broker" in capsys.readouterr().err


def test_a_lock_that_nobody_holds_does_not_count(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    DirectoryLock(str(data)).release()
    assert verified(capsys, data)[0] == 0


class Stream(io.StringIO):
    """A replacement for standard error, which is a terminal or not."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal
        self.written = ""

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, text: str) -> int:
        self.written += text
        return len(text)


@pytest.mark.parametrize(("is_terminal", "shown"), [
    (True, "\r[#####################.........]  70% of 10.0 MB"),
    (False, "70% of 10.0 MB\n"),
])  # fmt: skip
def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(is_terminal: bool, shown: str) -> None:
    stream, clock = Stream(is_terminal=is_terminal), ManualClock()
    progress = Progress(10_000_000, stream, clock)
    progress.advance(5_000_000)
    assert stream.written == ""
    clock.advance(6_000)
    progress.advance(2_000_000)
    assert stream.written == shown
