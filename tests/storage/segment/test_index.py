"""Tests the offset index, and the common parts of all indexes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.disk import OsDisk
from storage.segment.index import CorruptIndex, OffsetIndex

BASE = 1000
DISK = OsDisk()


def index_at(path: Path, *, fresh: bool = False, max_size_bytes: int = 1024, disk: OsDisk = DISK) -> OffsetIndex:
    return OffsetIndex(str(path), BASE, disk=disk, max_size_bytes=max_size_bytes, fresh=fresh)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "00000000000000001000.index"


@pytest.fixture
def index(path: Path) -> OffsetIndex:
    index = index_at(path, fresh=True)
    for offset, position in ((1010, 100), (1020, 250), (1035, 400)):
        index.append(offset, position)
    return index


def test_an_empty_index_points_at_the_segment_s_beginning(path: Path) -> None:
    index = index_at(path, fresh=True)
    assert index.lookup(5000) == (BASE, 0)
    assert index.last_offset == BASE
    assert index.entries == 0
    index.sanity_check()


@pytest.mark.parametrize(
    ("offset", "entry"),
    [
        (999, (BASE, 0)),
        (1009, (BASE, 0)),
        (1010, (1010, 100)),
        (1034, (1020, 250)),
        (1035, (1035, 400)),
        (9999, (1035, 400)),
    ],
)
def test_a_lookup_finds_the_last_entry_at_or_below(index: OffsetIndex, offset: int, entry: tuple[int, int]) -> None:
    assert index.lookup(offset) == entry


class SyncedSizes(OsDisk):
    """A disk that knows the sizes of files when they were synced."""

    __slots__ = ("sizes",)

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def fsync(self, handle: int) -> None:
        self.sizes.append(self.size(handle))


def test_what_was_written_before_is_durable_too_after_a_durable_flush(path: Path) -> None:
    disk = SyncedSizes()
    index = index_at(path, fresh=True, disk=disk)
    for offset in (1010, 1020, 1035):
        index.append(offset, offset)
    index.seal()
    assert disk.sizes == []
    for _ in range(2):
        index.seal(sync=True)
        assert disk.sizes == [24]


def test_the_file_is_kafka_s(index: OffsetIndex, path: Path) -> None:
    index.flush()
    assert path.read_bytes() == bytes.fromhex("0000000a00000064 00000014000000fa 0000002300000190")


def test_a_sealed_index_is_read_from_its_file(index: OffsetIndex, path: Path) -> None:
    index.seal()
    assert list(index) == [(1010, 100), (1020, 250), (1035, 400)]
    assert index_at(path).lookup(1021) == (1020, 250)


def test_only_what_is_new_is_written(index: OffsetIndex, path: Path) -> None:
    index.flush()
    index.append(1040, 500)
    path.write_bytes(b"\xff" * 24)
    index.flush()
    assert path.read_bytes() == b"\xff" * 24 + bytes.fromhex("00000028000001f4")


def test_an_index_that_was_closed_is_appended_to_again(index: OffsetIndex, path: Path) -> None:
    index.close()
    again = index_at(path)
    again.append(1040, 500)
    again.close()
    assert list(index_at(path))[2:] == [(1035, 400), (1040, 500)]


def test_a_fresh_index_replaces_the_file(index: OffsetIndex, path: Path) -> None:
    index.close()
    fresh = index_at(path, fresh=True)
    fresh.append(1001, 1)
    fresh.close()
    assert list(index_at(path)) == [(1001, 1)]


def test_a_missing_file_is_an_empty_index(path: Path) -> None:
    assert index_at(path).entries == 0
    assert not path.exists()


def test_an_empty_index_has_a_file_once_flushed(path: Path) -> None:
    index_at(path, fresh=True).close()
    assert path.read_bytes() == b""


def test_appends_must_grow(index: OffsetIndex) -> None:
    with pytest.raises(AssertionError, match="offset 1035 after 1035"):
        index.append(1035, 500)


def test_an_index_is_full_at_its_size_rounded_down(path: Path) -> None:
    index = index_at(path, fresh=True, max_size_bytes=23)
    fullness = [index.is_full]
    for n in (1, 2):
        index.append(BASE + n, n)
        fullness.append(index.is_full)
    assert fullness == [False, False, True]
    with pytest.raises(AssertionError, match="full"):
        index.append(1003, 3)


@pytest.mark.parametrize(("offset", "left"), [(1000, 0), (1010, 0), (1011, 1), (1035, 2), (1036, 3)])
@pytest.mark.parametrize("sealed", [False, True])
def test_truncation_drops_the_offset_and_all_beyond(
    index: OffsetIndex, path: Path, offset: int, left: int, sealed: bool
) -> None:
    if sealed:
        index.seal()
    index.truncate_to(offset)
    assert index.entries == left
    index.close()
    assert path.stat().st_size == left * 8


def test_a_truncation_leaves_a_mapping_that_is_in_use_alone(index: OffsetIndex) -> None:
    index.seal()
    mapping = index._entries()
    index.truncate_to(1010)
    index.flush()
    assert bytes(mapping[8:12]) == bytes.fromhex("00000014")


def test_a_truncated_index_takes_appends(index: OffsetIndex, path: Path) -> None:
    index.close()
    index.truncate_to(1020)
    index.append(1015, 180)
    index.close()
    assert list(index_at(path)) == [(1010, 100), (1015, 180)]


def test_a_reset_drops_a_torn_entry_too(path: Path) -> None:
    path.write_bytes(b"\0\0\0")
    index = index_at(path)
    index.reset()
    index.close()
    assert path.read_bytes() == b""
    index_at(path).sanity_check()


def test_a_truncation_that_drops_nothing_leaves_the_file_alone(index: OffsetIndex, path: Path) -> None:
    index.close()
    inode = path.stat().st_ino
    index.truncate_to(1036)
    index.close()
    assert path.stat().st_ino == inode


def test_an_index_that_was_renamed_is_written_in_its_new_place(index: OffsetIndex, path: Path) -> None:
    index.flush()
    index.append(1040, 500)
    index.rename(f"{path}.deleted")
    index.close()
    assert not path.exists()
    assert Path(f"{path}.deleted").stat().st_size == 32


def test_a_fresh_index_is_renamed_before_it_has_a_file(path: Path) -> None:
    index = index_at(path, fresh=True)
    index.rename(f"{path}.swap")
    index.close()
    assert Path(f"{path}.swap").exists()


def test_delete_leaves_nothing(index: OffsetIndex, path: Path) -> None:
    index.flush()
    index.delete()
    index.delete()
    assert not path.exists()


@pytest.mark.parametrize(
    "content",
    [
        "0000000a",  # half an entry
        "ffffffff00000000",  # an offset below the base
        "0000000a00000064 0000000000000000",  # what is left of a preallocated file
    ],
)
def test_a_corrupt_index_is_found_out(path: Path, content: str) -> None:
    path.write_bytes(bytes.fromhex(content))
    with pytest.raises(CorruptIndex, match=str(path)):
        index_at(path).sanity_check()


@pytest.mark.parametrize(
    "content",
    ["0000000a00000064 0000000900000065 0000000b00000066", "0000000a00000064 0000000b00000064 0000000c00000066"],
)
def test_verification_looks_at_every_entry(path: Path, content: str) -> None:
    path.write_bytes(bytes.fromhex(content))
    index_at(path).sanity_check()
    with pytest.raises(CorruptIndex, match="out of order"):
        index_at(path).verify()


def test_a_torn_entry_is_dropped_when_the_index_is_appended_to(index: OffsetIndex, path: Path) -> None:
    index.close()
    path.write_bytes(path.read_bytes()[:20])
    torn = index_at(path)
    torn.append(1050, 600)
    torn.close()
    assert list(index_at(path)) == [(1010, 100), (1020, 250), (1050, 600)]
    index_at(path).verify()


@given(st.sets(st.integers(1, 10_000), max_size=60), st.integers(0, 11_000))
def test_any_lookup_agrees_with_a_scan(offsets: set[int], target: int) -> None:
    index = OffsetIndex("unwritten", 0, disk=DISK, max_size_bytes=8 * 60, fresh=True)
    for position, offset in enumerate(sorted(offsets)):
        index.append(offset, position)
    below = [entry for entry in index if entry.offset <= target]
    assert index.lookup(target) == (below[-1] if below else (0, 0))
    index.verify()
