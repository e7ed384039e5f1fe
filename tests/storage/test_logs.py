"""Tests the log manager: several directories, and logs through starts, stops, deletions and moves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from storage.config import LogConfig
from storage.log_table import in_threads
from storage.logs import Logs
from tests.storage.managing import CONFIG, ID, OTHER_ID, TOPIC, contents, create, folders, place, start
from tests.storage.writing import (
    DISK,
    NOW_MS,
    base_offsets,
    config,
    error_of,
    write,
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "one", tmp_path / "two"


# Starting and stopping


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_all_logs_are_there_after_a_restart(data: Path, clean: bool, threads: int) -> None:
    logs = start(data, threads=threads)
    for partition in range(8):
        create(logs, partition, *[f"{partition}-{n}" * 20 for n in range(6)])
    if clean:
        logs.close(NOW_MS)
    again = start(data, threads=threads)
    assert len(again) == 8
    for partition in range(8):
        assert contents(again, partition) == [f"{partition}-{n}" * 20 for n in range(6)]
    assert all((log.recovered.segments == 0) == clean for log in again)


@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_done_in_threads_comes_in_order_and_the_first_failure_is_raised(threads: int) -> None:
    failing = {3: OSError("the fourth"), 7: OSError("the eighth")}

    def work(number: int) -> int:
        if number in failing:
            raise failing[number]
        return number

    done = in_threads(threads, work, range(10))
    assert [next(done) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="the fourth"):
        next(done)
    assert list(in_threads(threads, work, range(20, 40))) == list(range(20, 40))


def test_a_clean_stop_is_marked_and_the_mark_is_gone_once_started(data: Path) -> None:
    logs = start(data)
    create(logs, 0, "a")
    logs.close(NOW_MS, broker_epoch=9)
    marker = data / ".kafka_cleanshutdown"
    assert marker.read_text() == '{"version":0,"brokerEpoch":9}'
    start(data)
    assert not marker.exists()


def test_checkpoints_say_what_is_on_the_device_and_where_logs_begin(data: Path) -> None:
    logs = start(data)
    create(logs, 0, "a", "b")
    create(logs, 1, "a")
    log = logs.get(place(0))
    assert log is not None
    log.flush(NOW_MS)
    log.advance_log_start(1)
    logs.write_checkpoints()
    # One less than what was flushed: should the segment be rolled now, its indexes would not be on the device.
    assert (data / "recovery-point-offset-checkpoint").read_text() == "0\n2\norders 0 1\norders 1 0\n"
    assert (data / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 1\n"


def test_recovery_begins_at_the_checkpoint(data: Path) -> None:
    logs = start(data)
    create(logs, 0, *["x" * 100] * 10)
    log = logs.get(place(0))
    assert log is not None
    log.flush(NOW_MS)
    logs.write_checkpoints()
    write(log, "y" * 10)
    recovered = start(data).get(place(0))
    assert recovered is not None
    assert recovered.recovered.segments == 1


def test_deleted_records_stay_deleted_over_a_crash(data: Path) -> None:
    logs = start(data)
    create(logs, 0, "a", "b", "c")
    log = logs.get(place(0))
    assert log is not None
    log.advance_log_start(2)
    logs.write_checkpoints()
    assert contents(start(data), 0) == ["c"]


def test_damaged_checkpoints_cost_a_longer_recovery_and_a_warning(data: Path) -> None:
    logs = start(data)
    create(logs, 0, "a", "b")
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        (data / name).write_text("garbage")
    logs = Logs([str(data)], disk=DISK, unique=str)
    (report,) = logs.load(lambda _: CONFIG, NOW_MS)
    assert contents(logs, 0) == ["a", "b"]
    assert len(report.warnings) == 2
    assert "garbage" in report.warnings[0]


def test_folders_of_no_partition_are_named_and_left_alone(data: Path) -> None:
    (data / "backup of monday").mkdir(parents=True)
    (data / "lost+found").mkdir()
    (data / "__cluster_metadata-0").mkdir()
    logs = Logs([str(data)], disk=DISK, unique=str)
    (report,) = logs.load(lambda _: CONFIG, NOW_MS)
    assert report.warnings == (f"{data}/backup of monday: not a folder of a partition",)
    assert len(logs) == 0


def test_progress_is_told_as_logs_are_opened(data: Path) -> None:
    logs = start(data)
    for partition in range(3):
        create(logs, partition)
    progress: list[tuple[str, int, int]] = []
    Logs([str(data)], disk=DISK, unique=str).load(lambda _: CONFIG, NOW_MS, lambda *step: progress.append(step))
    assert progress == [(str(data), 1, 3), (str(data), 2, 3), (str(data), 3, 3)]


def test_each_topic_has_its_own_config(data: Path) -> None:
    logs = start(data)
    create(logs, 0)
    own = LogConfig(retention_ms=5)
    again = Logs([str(data)], disk=DISK, unique=str)
    again.load({TOPIC: own}.__getitem__, NOW_MS)
    assert [log.config for log in again] == [own]


# Creating


def test_a_new_log_goes_where_there_are_fewest(disks: tuple[Path, Path]) -> None:
    logs = start(*disks)
    for partition in range(5):
        create(logs, partition)
    assert [len(logs.in_dir(str(directory))) for directory in disks] == [3, 2]


def test_a_new_log_goes_where_it_is_told(disks: tuple[Path, Path]) -> None:
    logs = start(*disks)
    for partition in range(3):
        logs.create(place(partition), ID, CONFIG, NOW_MS, log_dir=str(disks[1]))
    assert len(folders(disks[1])) == 3
    with error_of(ErrorCode.LOG_DIR_NOT_FOUND):
        logs.create(place(9), ID, CONFIG, NOW_MS, log_dir="/elsewhere")


def test_creating_a_log_again_gives_the_same_one(data: Path) -> None:
    logs = start(data)
    assert logs.create(place(0), ID, CONFIG, NOW_MS) is logs.create(place(0), ID, CONFIG, NOW_MS)


def test_a_log_of_another_topic_of_the_name_is_not_taken_for_it(data: Path) -> None:
    logs = start(data)
    create(logs, 0)
    with error_of(ErrorCode.INCONSISTENT_TOPIC_ID):
        logs.create(place(0), OTHER_ID, CONFIG, NOW_MS)


def test_the_topic_id_is_kept_beside_the_log(data: Path) -> None:
    create(start(data), 0)
    assert [log.topic_id for log in start(data)] == [ID]


@pytest.mark.parametrize("content", ["garbage", "", None])
def test_a_log_that_has_lost_its_topic_id_gets_it_again(data: Path, content: str | None) -> None:
    logs = start(data)
    create(logs, 0, "a")
    logs.close(NOW_MS)
    metadata = data / "orders-0" / "partition.metadata"
    metadata.unlink()
    if content is not None:
        metadata.write_text(content)
    again = start(data)
    assert [log.topic_id for log in again] == [None]
    again.create(place(0), ID, CONFIG, NOW_MS)
    assert contents(again, 0) == ["a"]
    assert [log.topic_id for log in start(data)] == [ID]


def test_long_names_with_dots_and_dashes_are_fine(data: Path) -> None:
    name = "a.b_c-1-" + "x" * 241
    logs = start(data)
    write(logs.create(place(7, name), ID, CONFIG, NOW_MS), "a")
    again = start(data)
    assert [log.topic_partition for log in again] == [place(7, name)]
    again.delete(place(7, name), NOW_MS)
    assert len(folders(data)[0]) == 255


# Deleting


def test_a_deleted_log_s_folder_is_renamed_and_removed_later(data: Path) -> None:
    logs = start(data)
    create(logs, 0, "a")
    logs.delete(place(0), NOW_MS)
    assert logs.get(place(0)) is None
    assert folders(data) == [f"orders-0.{0:032x}-delete"]
    assert logs.delete_expired(NOW_MS + 59_999) == []
    assert logs.delete_expired(NOW_MS + 60_000) == [f"{data}/orders-0.{0:032x}-delete"]
    assert folders(data) == []


def test_a_topic_can_be_made_again_at_once(data: Path) -> None:
    logs = start(data)
    create(logs, 0, "a", "b", "c")
    log = logs.get(place(0))
    assert log is not None
    log.advance_log_start(2)
    logs.write_checkpoints()
    logs.delete(place(0), NOW_MS)
    logs.create(place(0), OTHER_ID, CONFIG, NOW_MS)
    assert contents(start(data), 0) == []
    again = start(data).get(place(0))
    assert again is not None
    assert (again.topic_id, again.log_start_offset) == (OTHER_ID, 0)


def test_what_was_being_deleted_is_removed_after_a_restart(data: Path) -> None:
    logs = start(data)
    create(logs, 0, "a")
    logs.delete(place(0), NOW_MS)
    again = start(data)
    assert len(again) == 0
    again.delete_expired(NOW_MS + 60_000)
    assert folders(data) == []


def test_who_reads_a_deleted_log_reads_on(data: Path) -> None:
    logs = start(data)
    create(logs, 0, "a")
    log = logs.get(place(0))
    assert log is not None
    log.roll(NOW_MS)
    (view,) = log.read(0, 1000).parts
    before = bytes(view)
    logs.delete(place(0), NOW_MS)
    logs.delete_expired(NOW_MS + 60_000)
    assert bytes(view) == before


def test_a_log_that_the_cluster_does_not_know_is_set_aside(data: Path) -> None:
    logs = start(data)
    create(logs, 0, "a")
    logs.set_stray_aside(place(0))
    assert folders(data) == [f"orders-0.{0:032x}-stray"]
    again = start(data)
    assert len(again) == 0
    assert list(again.strays.values()) == [place(0)]


# By and by


def test_a_flush_is_due_by_count_and_by_time(data: Path) -> None:
    logs = start(data)
    by_count = logs.create(place(0), ID, config(flush_messages=3), NOW_MS)
    by_time = logs.create(place(1), ID, config(flush_ms=1000), NOW_MS)
    write(by_count, "a", "b")
    write(by_time, "a")
    assert logs.flush_due(NOW_MS + 999) == 0
    write(by_count, "c")
    assert [log.must_flush for log in (by_count, by_time)] == [True, False]
    assert logs.flush_due(NOW_MS + 999) == 1
    assert logs.flush_due(NOW_MS + 1000) == 1
    assert (by_count.recovery_point, by_time.recovery_point) == (3, 1)
    assert logs.flush_due(NOW_MS + 9000) == 0


def test_what_was_rolled_is_flushed_in_any_case(data: Path) -> None:
    logs = start(data)
    log = logs.create(place(0), ID, config(), NOW_MS)
    write(log, "a", "b")
    assert logs.flush_due(NOW_MS) == 0
    log.roll(NOW_MS)
    write(log, "c")
    assert logs.flush_due(NOW_MS) == 1
    assert log.recovery_point == 2
    assert logs.flush_due(NOW_MS) == 0


def test_retention_goes_over_all_logs(data: Path) -> None:
    logs = start(data)
    for partition in range(3):
        create(logs, partition, *["x" * 200] * 3)
    for log in logs:
        log.config = config(retention_bytes=1, retention_ms=-1)
    done = logs.apply_retention(NOW_MS)
    assert [(log.topic_partition.partition, len(deleted)) for log, deleted in done] == [(0, 2), (1, 2), (2, 2)]
    assert [base_offsets(log) for log in logs] == [[2], [2], [2]]


def test_sizes_are_those_of_the_files(data: Path) -> None:
    logs = start(data)
    create(logs, 0, *["x" * 200] * 3)
    (size,) = logs.sizes(str(data))
    files = (data / "orders-0").glob("*.log")
    assert size.size_bytes == sum(os.path.getsize(file) for file in files)
    assert (size.log_end_offset, size.is_future) == (3, False)


def test_how_far_compaction_came_outlives_the_broker_and_goes_with_the_log(tmp_path: Path) -> None:
    logs = start(tmp_path)
    create(logs, 0, "a", "b")
    create(logs, 1, "a")
    log = logs.get(place(0))
    assert log is not None
    log.cleaned_to = 2
    logs.write_checkpoints()
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
    logs.close(NOW_MS)
    again = start(tmp_path)
    assert [log.cleaned_to for log in again] == [2, None]
    again.delete(place(0), NOW_MS)
    again.write_checkpoints()
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n0\n"


def test_a_damaged_checkpoint_of_compaction_means_that_nothing_is_clean(tmp_path: Path) -> None:
    logs = start(tmp_path)
    create(logs, 0, "a")
    logs.close(NOW_MS)
    (tmp_path / "cleaner-offset-checkpoint").write_text("nonsense")
    assert [log.cleaned_to for log in start(tmp_path)] == [None]
