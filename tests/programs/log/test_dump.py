"""The output of `odradek log dump`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import main
from coordinator.cluster.configs.resource import ResourceType
from coordinator.group.records import GroupRecord
from protocol.coordinator_records import encode_key, encode_value
from protocol.coordinator_records.offsets import OffsetCommitKey, OffsetCommitValue
from protocol.metadata_records import encode_record
from protocol.metadata_records.settings import ConfigRecord
from protocol.records.building import build
from protocol.records.record import Record
from storage.log import Log
from tests.storage.cleaning import put
from tests.storage.writing import NOW_MS, PID, append, config, end_transaction, open_log, write

AT = "2023-11-14T22:13:20.000Z"


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path / "orders-0", config(index_interval_bytes=1))


def dumped(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    assert main(["log", "dump", *map(str, arguments)]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("words", "status"), [(("dump",), 0), (("verify",), 1), (("repair",), 1)])
def test_a_reader_that_closes_the_output_ends_the_command_quietly(
    log: Log, words: tuple[str, ...], status: int
) -> None:
    """Commands that look for faults have not looked everywhere: they don't end with the code for none."""
    for value in "abc":
        write(log, value)
    log.close()
    program = "import sys; from cli.main import main; sys.exit(main(sys.argv[1:]))"
    arguments = [sys.executable, "-c", program, "log", *words, log.directory]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stdout is not None
        command.stdout.close()
        assert command.stderr is not None
        assert command.stderr.read() == b""
    assert command.returncode == status


def test_a_segment_is_batches_and_records(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    put(log, ("a", "1"), ("b", None), pid=PID)
    end_transaction(log, commit=True)
    assert dumped(capsys, log.segments.active.path) == [
        "batch 0 to 1, 2 records, 78 bytes at 0, none, leader epoch 0, producer 4000 epoch 0 sequence 0, "
        f"create time up to {AT}",
        f"  0 {AT} key 'a' value '1'",
        f"  1 {AT} key 'b' value null",
        "batch 2 to 2, 1 record, 78 bytes at 78, none, leader epoch 0, producer 4000 epoch 0 sequence -1, "
        f"transactional, control, create time up to {AT}",
        f"  2 {AT} commit of a transaction, coordinator epoch 1",
    ]


def test_batches_alone_from_an_offset_on(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    for value in "abc":
        write(log, value)
    lines = dumped(capsys, log.segments.active.path, "--batches", "--from", 2)
    assert [line.split(",")[0] for line in lines] == ["batch 2 to 2"]


def test_a_folder_is_all_its_files(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    put(log, ("a", "1"), pid=PID, transactional=True)
    end_transaction(log, commit=False)
    put(log, ("b", "2"))
    log.flush(NOW_MS)
    log.close()
    lines = "\n".join(dumped(capsys, log.directory, "--batches"))
    for part in (
        "offset 1 at 70",
        f"up to {AT} until offset",
        "aborted: producer 4000, offsets 0 to 1, last stable offset 2",
        "producer 4000 epoch 0, last sequence 0 at offset 0, coordinator epoch 1",
        "leader-epoch-checkpoint:\n0\n1\n0 0",
    ):
        assert part in lines, lines


def test_a_log_directory_is_its_files_and_all_partitions(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    for value in "abc":
        write(log, value)
    data = Path(log.directory).parent
    (data / "meta.properties").write_text("version=1\n")
    assert main(["log", "dump", str(data)]) == 0
    lines = capsys.readouterr().out
    assert "meta.properties:\nversion=1\n" in lines
    assert "batch 2 to 2" in lines


def test_a_file_without_entries_and_a_folder_without_files_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", "dump", str(tmp_path)]) == 1
    assert "it has no file that can be dumped" in capsys.readouterr().err
    (tmp_path / f"{0:020d}.index").touch()
    assert main(["log", "dump", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "(nothing)"


def test_internal_topics_are_decoded_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    value = OffsetCommitValue(offset=42, metadata="here", commit_timestamp=NOW_MS)
    record = GroupRecord(key, value, 3)
    log = open_log(tmp_path / "__consumer_offsets-7", config())
    records = [
        Record(0, NOW_MS, encode_key(record.key), encode_value(value, 3)),
        Record(0, NOW_MS, encode_key(record.key), None),
        Record(0, NOW_MS, b"\0\x63", None),
    ]
    append(log, memoryview(build(records)))
    lines = dumped(capsys, log.segments.active.path)
    assert "OffsetCommitKey(group='g', topic='t', partition=3) → OffsetCommitValue(offset=42" in lines[1]
    assert lines[2].endswith("→ deleted")
    assert "a record type of a later Kafka" in lines[3]


def test_the_metadata_log_is_decoded_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name="retention.ms", value="5")
    log = open_log(tmp_path / "__cluster_metadata-0", config())
    append(log, memoryview(build([Record(0, NOW_MS, None, encode_record(record, 0))])))
    lines = dumped(capsys, log.segments.active.path)
    assert "ConfigRecord(resource_type=2, resource_name='t', name='retention.ms', value='5')" in lines[1]


def test_bytes_that_are_no_text_are_shown_in_hexadecimal(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    append(log, memoryview(build([Record(0, NOW_MS, b"\xff\x00", b"x" * 500)])))
    (line,) = dumped(capsys, log.segments.active.path)[1:]
    assert "key 0xff00" in line
    assert line.endswith("… (500 bytes)")


def test_what_cannot_be_read_is_told_after_what_could(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    write(log, "a")
    write(log, "b")
    path = Path(log.segments.active.path)
    path.write_bytes(path.read_bytes()[:-5])
    assert main(["log", "dump", str(path)]) == 1
    output = capsys.readouterr()
    assert output.out.startswith("batch 0 to 0")
    assert "67 bytes from 72 on are not a whole batch" in output.err
    assert main(["log", "dump", str(path.parent / "absent"), str(path.parent / "nonsense.xyz")]) == 1
    assert "there is no such file" in capsys.readouterr().err
