"""Tests reads of a log: the batches that a fetch gets, which later changes of the log don't affect."""

from __future__ import annotations

import os
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from protocol.records.batch import read_header
from storage.disk import OsDisk
from storage.log import Log
from storage.open_files import OpenFiles
from storage.segment import recent as recent_module
from storage.segment import segment as segment_module
from tests.storage.writing import (
    NOW_MS,
    config,
    error_of,
    headers,
    open_log,
    read_all,
    values,
    write,
)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path / "orders-0")


def fill(log: Log, count: int, size: int = 50) -> list[str]:
    """Appends batches of two records each."""
    written = [f"{n:0{size}d}" for n in range(2 * count)]
    for first, second in zip(written[::2], written[1::2], strict=True):
        write(log, first, second)
    return written


def test_a_read_begins_with_the_batch_that_has_the_offset(log: Log) -> None:
    fill(log, 3)
    (part,) = log.read(3, 10_000).parts
    assert read_header(part).base_offset == 2


def test_nothing_is_read_at_the_end(log: Log) -> None:
    fill(log, 1)
    assert log.read(2, 10_000).parts == []


@pytest.mark.parametrize("offset", [-1, 0, 3, 7, 99])
def test_an_offset_outside_the_log_is_out_of_range(log: Log, offset: int) -> None:
    fill(log, 3)
    log.advance_log_start(4)
    with error_of(ErrorCode.OFFSET_OUT_OF_RANGE):
        log.read(offset, 10_000)


def test_the_first_batch_is_whole_whatever_its_size(log: Log) -> None:
    fill(log, 2)
    result = log.read(0, 1)
    assert result.size_bytes == headers(log)[0].size_bytes


def test_without_that_privilege_a_read_is_cut_at_its_limit(log: Log) -> None:
    fill(log, 2)
    assert log.read(0, 1, min_one=False).size_bytes == 1
    assert log.read(0, 0, min_one=False).parts == []


def test_a_read_stops_before_the_high_watermark(log: Log) -> None:
    fill(log, 4)
    assert [record.offset for record in read_all(log, max_offset=4)] == [0, 1, 2, 3]
    assert log.read(4, 10_000, max_offset=4).parts == []
    assert log.read(5, 10_000, max_offset=4).parts == []


def test_a_high_watermark_within_a_batch_keeps_the_batch_back(log: Log) -> None:
    fill(log, 2)
    (part,) = log.read(0, 10_000, max_offset=3).parts
    assert len(part) == headers(log)[0].size_bytes


def test_a_high_watermark_beyond_the_end_is_the_end(log: Log) -> None:
    written = fill(log, 2)
    assert values(read_all(log, max_offset=99)) == written


def test_a_read_stays_in_one_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", config(segment_bytes=1000))
    written = fill(log, 20)
    assert len(log.segments) > 2
    assert log.read(0, 100_000).size_bytes == log.segments.first.size_bytes
    assert values(read_all(log)) == written


def test_every_offset_is_found_in_every_kind_of_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", config(segment_bytes=3000))
    fill(log, 40)
    for offset in range(80):
        (part,) = log.read(offset, 1).parts
        assert read_header(part).base_offset == offset - offset % 2


def test_a_sealed_segment_is_read_without_copying(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", config(segment_bytes=1000))
    fill(log, 20)
    one, other = log.read(0, 500).parts[0], log.read(0, 500).parts[0]
    assert one.obj is other.obj


@pytest.mark.source_only
def test_the_end_of_the_active_segment_is_read_before_it_is_mapped(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_module, "REMAP_BYTES", 2000)
    written = fill(log, 5)
    assert isinstance(log.read(0, 100).parts[0].obj, bytes)
    written += fill(log, 20)
    mapped = log.read(0, 100).parts[0]
    assert not isinstance(mapped.obj, bytes)
    written += fill(log, 3)
    assert log.read(0, 100).parts[0].obj is mapped.obj
    assert isinstance(log.read(50, 100).parts[0].obj, bytes)
    assert values(read_all(log)) == written


def test_a_read_across_the_mapped_border_is_whole(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_module, "REMAP_BYTES", 1000)
    written = fill(log, 12)
    log.read(0, 100)
    written += fill(log, 3)
    assert log.read(0, 100_000).size_bytes == log.size_bytes
    assert values(read_all(log, max_bytes=100_000)) == written


def test_what_was_read_outlives_truncation_and_deletion(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", config(segment_bytes=2000))
    fill(log, 40)
    views = [log.read(header.base_offset, 1).parts[0] for header in headers(log)]
    before = [bytes(view) for view in views]
    log.truncate_to(30, NOW_MS)
    write(log, "x" * 500)
    log.truncate_fully(0, NOW_MS)
    log.segments.delete_expired(NOW_MS + 60_000)
    write(log, "y" * 500)
    assert [bytes(view) for view in views] == before


def test_reading_the_tail_needs_no_look_at_the_index(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(log, 10)
    monkeypatch.setattr(type(log.segments.active.index), "lookup", None)
    assert log.read(7, 10_000).start_offset == 7


def test_a_long_active_segment_forgets_the_places_of_its_older_batches(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_module, "RECENT_BATCHES", 4)
    written = fill(log, 30)
    for offset in range(60):
        assert read_header(log.read(offset, 1).parts[0]).base_offset == offset - offset % 2
    assert values(read_all(log)) == written


def test_the_places_of_recent_batches_take_little_memory() -> None:
    recent = recent_module.RecentBatches()
    tracemalloc.start()
    try:
        for number in range(20_000):
            recent.add(1_000_000 + number, 1_000 * number)
        size_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size_bytes < 16_000


def test_an_idle_log_has_no_file_open(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", config(segment_bytes=1000))
    fill(log, 20)
    log.flush(NOW_MS)
    log.close()
    before = len(os.listdir("/proc/self/fd"))
    reopened = open_log(tmp_path / "orders-0", config(segment_bytes=1000))
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(reopened.segments) == len(log.segments)


def test_an_index_entry_comes_every_index_interval_bytes(log: Log) -> None:
    fill(log, 30)
    positions = [entry.position for entry in log.segments.active.index]
    sizes = [after - before for before, after in pairwise([0, *positions])]
    assert min(sizes) > 100
    assert max(sizes) <= 100 + 2 * headers(log)[0].size_bytes


def test_only_so_many_segments_stay_mapped(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", config(segment_bytes=500), disk=OsDisk(OpenFiles(mappings=3)))
    written = fill(log, 40)
    log.flush(NOW_MS)
    before = len(os.listdir("/proc/self/fd"))
    assert values(read_all(log)) == written
    assert len(log.segments) > 15
    assert len(os.listdir("/proc/self/fd")) - before <= 3 * 2


class Unloading(OsDisk):
    """A disk that knows how many bytes were unloaded."""

    __slots__ = ("unloaded",)

    def __init__(self, files: OpenFiles) -> None:
        super().__init__(files)
        self.unloaded: list[int] = []

    def unload(self, mapping: memoryview) -> None:
        self.unloaded.append(len(mapping))


def test_pages_that_were_read_do_not_stay_this_process_s_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Unloading(OpenFiles(loaded_bytes=1_000))
    log = open_log(tmp_path / "orders-0", disk=disk)
    monkeypatch.setattr(segment_module, "REMAP_BYTES", 0)
    written = fill(log, 10)
    log.roll(NOW_MS)
    assert values(read_all(log)) == written
    assert disk.unloaded
