"""Tests the files and mappings that stay open between uses, and their owners."""

from __future__ import annotations

import gc
from pathlib import Path

from storage.disk import OsDisk
from storage.log import Log
from storage.open_files import KeptOpen, OpenFiles
from tests.storage.writing import config, open_log, read_all, values, write


def fill(log: Log) -> list[str]:
    """Appends records, each in a separate segment."""
    written = [f"{n:0400d}" for n in range(10)]
    for value in written:
        write(log, value)
    return written


class Resource:
    def __init__(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


def test_the_resource_that_was_opened_first_is_closed_beyond_the_limit() -> None:
    open_ones, resources = KeptOpen(2), [Resource() for _ in range(3)]
    for resource in resources:
        open_ones.add(resource)
    assert [resource.is_open for resource in resources] == [False, True, True]


def test_a_resource_that_is_opened_again_is_not_closed_for_its_own_sake() -> None:
    open_ones, resource = KeptOpen(1), Resource()
    open_ones.add(resource)
    open_ones.add(resource)
    assert resource.is_open


def test_a_resource_that_its_owner_drops_is_not_kept_alive() -> None:
    open_ones = KeptOpen(1)
    open_ones.add(Resource())
    gc.collect()
    open_ones.add(remaining := Resource())
    assert remaining.is_open


class Pages:
    def __init__(self) -> None:
        self.unloads = 0

    def unload(self) -> None:
        self.unloads += 1


def test_small_reads_of_many_mappings_are_not_remembered_for_ever() -> None:
    loaded = OpenFiles().loaded
    mappings = [Pages() for _ in range(10_000)]
    for mapping in mappings:
        loaded.add(mapping, 1)
    assert sum(mapping.unloads for mapping in mappings) > 8_000


def test_two_disks_of_a_process_share_nothing(tmp_path: Path) -> None:
    first = open_log(tmp_path / "a" / "orders-0", config(segment_bytes=500), disk=OsDisk(OpenFiles(mappings=1)))
    second = open_log(tmp_path / "b" / "orders-0", config(segment_bytes=500), disk=OsDisk(OpenFiles(mappings=1)))
    written = fill(first), fill(second)
    segment = first.segments.first
    segment.view(0, segment.size_bytes)
    assert values(read_all(second)) == written[1]  # each segment of which takes the one place from the one before
    assert segment._mapping is not None
    assert len(segment._mapping.view) == segment.size_bytes
    assert values(read_all(first)) == written[0]
    assert not len(segment._mapping.view)
