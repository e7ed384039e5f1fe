"""Tests flushes: their guarantees, and that they may run in a thread beside other work."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from storage.disk import OsDisk
from storage.epochs import LeaderEpochCache
from storage.failure import LogDirFailure
from storage.log import Log
from tests.storage.writing import NOW_MS, append, base_offsets, batch, config, open_log, read_all, values, write


class CountingDisk(OsDisk):
    """A disk that records which files were synced."""

    __slots__ = ("during_sync", "paths", "synced")

    def __init__(self) -> None:
        super().__init__()
        self.paths: dict[int, str] = {}
        self.synced: list[str] = []
        self.during_sync: Callable[[], object] = lambda: None
        """Called while a directory is synced."""

    def open(self, path: str, *, writable: bool = True, create: bool = False, truncate: bool = False) -> int:
        handle = super().open(path, writable=writable, create=create, truncate=truncate)
        self.paths[handle] = path
        return handle

    def fsync(self, handle: int) -> None:
        self.synced.append(Path(self.paths[handle]).name)

    def fsync_dir(self, path: str) -> None:
        self.during_sync()
        self.synced.append(f"{Path(path).name}/")


@pytest.fixture
def disk() -> CountingDisk:
    return CountingDisk()


@pytest.fixture
def log(tmp_path: Path, disk: CountingDisk) -> Log:
    return open_log(tmp_path / "orders-0", config(segment_bytes=1000), disk=disk)


def synced(disk: CountingDisk) -> set[str]:
    files = {name for name in disk.synced if not name.startswith("leader-epoch")}
    disk.synced.clear()
    return files


def test_a_flush_syncs_the_file_and_the_folder_that_names_it(log: Log, disk: CountingDisk) -> None:
    write(log, "a")
    log.flush(NOW_MS)
    assert synced(disk) == {f"{0:020d}.log", "orders-0/", f"{os.path.basename(log.log_dir)}/"}
    write(log, "b")
    log.flush(NOW_MS)
    assert synced(disk) == {f"{0:020d}.log"}
    assert log.recovery_point == 2


def test_the_first_flush_after_a_crash_syncs_the_folders_again(tmp_path: Path, log: Log, disk: CountingDisk) -> None:
    write(log, "a")
    log.flush(NOW_MS)
    recovered = open_log(tmp_path / "orders-0", log.config, disk=disk, clean=False, recovery_point=1)
    write(recovered, "b")
    synced(disk)
    recovered.flush(NOW_MS)
    assert synced(disk) >= {"orders-0/", f"{os.path.basename(log.log_dir)}/"}


def test_a_log_that_begins_anew_has_its_names_on_the_device(log: Log, disk: CountingDisk) -> None:
    write(log, "a")
    log.flush(NOW_MS)
    synced(disk)
    log.truncate_fully(5, NOW_MS)
    assert synced(disk) == {"orders-0/"}


def test_with_nothing_new_nothing_is_synced(log: Log, disk: CountingDisk) -> None:
    write(log, "a")
    log.flush(NOW_MS)
    disk.synced.clear()
    log.flush(NOW_MS)
    assert synced(disk) == set()


def test_a_rolled_segment_is_synced_with_its_indexes_and_the_active_one_can_wait(log: Log, disk: CountingDisk) -> None:
    write(log, "a")
    log.flush(NOW_MS)
    synced(disk)
    write(log, "a")
    log.roll(NOW_MS)
    write(log, "b")
    log.flush(NOW_MS, log.due_flush(NOW_MS))
    files = {f"{0:020d}.log", f"{0:020d}.index", f"{0:020d}.timeindex", f"{2:020d}.snapshot"}
    assert synced(disk) == {*files, "orders-0/"}
    assert log.recovery_point == 2


def test_the_indexes_of_a_segment_that_was_flushed_before_it_was_rolled_are_synced_too(
    log: Log, disk: CountingDisk
) -> None:
    write(log, "a")
    log.flush(NOW_MS)
    log.roll(NOW_MS)
    synced(disk)
    assert log.due_flush(NOW_MS) == 1
    log.flush(NOW_MS, 1)
    assert f"{0:020d}.timeindex" in synced(disk)
    assert log.due_flush(NOW_MS) is None


def test_the_epochs_are_durable_before_the_recovery_point_moves(log: Log, disk: CountingDisk) -> None:
    write(log, "a")
    log.flush(NOW_MS)
    assert disk.synced[0].startswith("leader-epoch-checkpoint")


def test_what_is_appended_during_a_flush_is_not_called_flushed(log: Log, disk: CountingDisk) -> None:
    write(log, "a")
    disk.during_sync = lambda: write(log, "b")
    log.flush(NOW_MS)
    assert log.recovery_point == 1 < log.log_end_offset


def test_flushes_in_a_thread_disturb_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", config(segment_bytes=2000, retention_bytes=20_000, file_delete_delay_ms=0))
    done = Event()

    def flush() -> int:
        count = 0
        while not done.is_set():
            log.flush(NOW_MS, log.due_flush(NOW_MS) if count % 2 else None)
            log.segments.delete_expired(NOW_MS)
            count += 1
        return count

    with ThreadPoolExecutor(1) as pool:
        flushing = pool.submit(flush)
        written = []
        for n in range(600):
            written.append(f"{n:060d}")
            write(log, written[-1])
            if n % 50 == 0:
                log.apply_retention(NOW_MS)
            if n % 133 == 0:
                log.truncate_to(log.log_end_offset - 1, NOW_MS)
                log.update_high_watermark(log.log_end_offset)
                written.pop()
        done.set()
        assert flushing.result() > 0
    assert log.recovery_point <= log.log_end_offset == len(written)
    start = log.log_start_offset
    assert values(read_all(log)) == written[start:]
    reopened = open_log(tmp_path / "orders-0", log.config, clean=False, recovery_point=log.recovery_point)
    assert values(read_all(reopened)) == written[start:]
    assert reopened.recovered.cut is None
    assert base_offsets(reopened) == base_offsets(log)


def test_a_flush_of_a_log_that_is_deleted_meanwhile_is_no_failure_of_its_directory(log: Log) -> None:
    """The event loop renames the folder while a worker thread uses its path."""
    write(log, "a")
    log.is_doomed = True
    os.rename(log.directory, f"{log.directory}.gone-delete")
    log.flush(NOW_MS)


def test_a_folder_that_nobody_has_deleted_is_missed(log: Log) -> None:
    write(log, "a")
    os.rename(log.directory, f"{log.directory}.gone")
    with pytest.raises(LogDirFailure):
        log.flush(NOW_MS)


def test_a_log_in_which_nothing_ever_was_is_closed_without_waiting_for_the_device(log: Log, disk: CountingDisk) -> None:
    log.assign_leader_epoch(3, 0)
    log.flush(NOW_MS)
    log.close()
    assert disk.synced == []


def test_a_log_that_was_not_used_since_the_start_is_closed_so_too(tmp_path: Path, log: Log, disk: CountingDisk) -> None:
    write(log, "a")
    log.flush(NOW_MS)
    log.close()
    again = open_log(tmp_path / "orders-0", config(segment_bytes=1000), disk=disk)
    disk.synced.clear()
    again.flush(NOW_MS)
    again.close()
    assert disk.synced == []


def test_a_log_that_became_empty_is_closed_with_all_its_names_on_the_device(log: Log, disk: CountingDisk) -> None:
    write(log, "a")
    log.truncate_to(0, NOW_MS)
    disk.synced.clear()
    log.flush(NOW_MS)
    log.close()
    assert "orders-0/" in synced(disk)


def test_a_log_whose_leader_epoch_has_no_records_is_closed_without_waiting_for_the_device(
    tmp_path: Path, log: Log, disk: CountingDisk
) -> None:
    write(log, "a")
    log.flush(NOW_MS)
    log.close()
    again = open_log(tmp_path / "orders-0", config(segment_bytes=1000), disk=disk)
    again.assign_leader_epoch(9, 1)
    disk.synced.clear()
    again.flush(NOW_MS)
    again.close()
    assert disk.synced == []


def test_an_epoch_without_records_goes_when_the_log_is_opened_whether_it_was_written_or_not(
    tmp_path: Path, log: Log
) -> None:
    write(log, "a")
    log.assign_leader_epoch(9, 1)
    log.epochs.flush()
    log.flush(NOW_MS)
    log.close()
    assert open_log(tmp_path / "orders-0", log.config).last_leader_epoch == 0


def test_an_epoch_that_was_cut_off_leaves_its_file_when_the_log_is_closed(log: Log, disk: CountingDisk) -> None:
    write(log, "a")
    log.assign_leader_epoch(9, 1)
    append(log, batch("b"), leader_epoch=9)
    log.flush(NOW_MS)
    log.truncate_to(1, NOW_MS)
    disk.synced.clear()
    log.close()
    assert LeaderEpochCache.load(log.directory, disk=disk).entries == [(0, 0)]
    assert [name for name in disk.synced if name.startswith("leader-epoch")]


def test_an_empty_log_is_closed_without_waiting_after_an_unclean_stop_too(
    tmp_path: Path, log: Log, disk: CountingDisk
) -> None:
    """Without this, ten thousand partitions of a broker that was once killed would need three syncs each at its next
    stop, a minute in total."""
    again = open_log(tmp_path / "orders-0", config(segment_bytes=1000), disk=disk, clean=False)
    again.assign_leader_epoch(3, 0)
    again.flush(NOW_MS)
    again.close()
    assert disk.synced == []
    reopened = open_log(tmp_path / "orders-0", config(segment_bytes=1000))
    assert reopened.recovered.rebuilt == ()


def test_an_empty_log_is_closed_with_its_names_on_the_device_where_an_index_had_entries(
    tmp_path: Path, log: Log, disk: CountingDisk
) -> None:
    index = tmp_path / "orders-0" / f"{0:020d}.index"
    index.write_bytes(bytes(8))
    again = open_log(tmp_path / "orders-0", config(segment_bytes=1000), disk=disk, clean=False)
    again.flush(NOW_MS)
    again.close()
    assert index.read_bytes() == b""
    assert disk.synced == ["orders-0/"]
