"""Tests the time index."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.disk import OsDisk
from storage.segment.index import CorruptIndex
from storage.segment.time_index import TimeIndex

BASE = 500
DISK = OsDisk()


def index_at(path: Path, *, fresh: bool = False, max_size_bytes: int = 1200) -> TimeIndex:
    return TimeIndex(str(path), BASE, disk=DISK, max_size_bytes=max_size_bytes, fresh=fresh)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "00000000000000000500.timeindex"


@pytest.fixture
def index(path: Path) -> TimeIndex:
    index = index_at(path, fresh=True)
    for timestamp, offset in ((1000, 510), (2000, 520), (3000, 535)):
        index.maybe_append(timestamp, offset)
    return index


def test_an_empty_index_knows_no_time(path: Path) -> None:
    index = index_at(path, fresh=True)
    assert index.last_entry == (-1, BASE)
    assert index.lookup(1000) == (-1, BASE)
    index.sanity_check()


@pytest.mark.parametrize(
    ("timestamp", "entry"), [(999, (-1, BASE)), (1000, (1000, 510)), (2999, (2000, 520)), (9999, (3000, 535))]
)
def test_a_lookup_finds_the_last_entry_at_or_below(index: TimeIndex, timestamp: int, entry: tuple[int, int]) -> None:
    assert index.lookup(timestamp) == entry


def test_the_file_is_kafka_s(index: TimeIndex, path: Path) -> None:
    index.flush()
    assert path.read_bytes() == bytes.fromhex(
        "00000000000003e80000000a 00000000000007d000000014 0000000000000bb800000023"
    )


def test_an_older_or_equal_timestamp_adds_nothing(index: TimeIndex) -> None:
    index.maybe_append(3000, 540)
    assert index.last_entry == (3000, 535)


def test_neither_offset_nor_time_goes_back(index: TimeIndex) -> None:
    with pytest.raises(AssertionError, match="offset 534 after 535"):
        index.maybe_append(4000, 534)
    with pytest.raises(AssertionError, match="timestamp 2999 after 3000"):
        index.maybe_append(2999, 540)


def test_a_slot_is_kept_for_the_entry_at_roll(path: Path) -> None:
    index = index_at(path, fresh=True, max_size_bytes=36)
    index.maybe_append(1, 501)
    index.maybe_append(2, 502)
    assert index.is_full
    with pytest.raises(AssertionError, match="full"):
        index.maybe_append(3, 503)
    index.maybe_append(3, 503, skip_full_check=True)
    assert index.entries == 3


@pytest.mark.parametrize(("offset", "left"), [(500, 0), (510, 0), (511, 1), (535, 2), (536, 3)])
def test_truncation_drops_the_offset_and_all_beyond(index: TimeIndex, offset: int, left: int) -> None:
    index.seal()
    index.truncate_to(offset)
    assert index.entries == left


def test_equal_offsets_go_together() -> None:
    index = TimeIndex("unwritten", BASE, disk=DISK, max_size_bytes=1200, fresh=True)
    index.maybe_append(1, 510)
    index.maybe_append(2, 510)
    index.truncate_to(510)
    assert index.entries == 0


@pytest.mark.parametrize(
    "content",
    [
        "00000000000003e8",
        "00000000000003e80000000a 00000000000003e700000014",
        "00000000000003e8ffffffff",
        "000000000000000000000000 000000000000000000000000",  # what is left of a preallocated file
    ],
)
def test_a_corrupt_index_is_found_out(path: Path, content: str) -> None:
    path.write_bytes(bytes.fromhex(content))
    with pytest.raises(CorruptIndex, match=str(path)):
        index_at(path).sanity_check()


def test_verification_looks_at_every_entry(path: Path) -> None:
    path.write_bytes(bytes.fromhex("00000000000003e80000000a 00000000000003e700000014 00000000000003e900000015"))
    index_at(path).sanity_check()
    with pytest.raises(CorruptIndex, match="out of order"):
        index_at(path).verify()
