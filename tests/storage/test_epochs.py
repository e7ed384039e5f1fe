"""Tests the leader epochs of a log, as Kafka's LeaderEpochFileCacheTest does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.building import build
from storage.checkpoint import CorruptCheckpoint
from storage.disk import OsDisk
from storage.epochs import LEADER_EPOCHS, LeaderEpochCache
from storage.producers.entry import Origin
from tests.storage.writing import NOW_MS, append, batch, open_log, records

DISK = OsDisk()


@pytest.fixture
def cache(tmp_path: Path) -> LeaderEpochCache:
    cache = LeaderEpochCache(str(tmp_path), disk=DISK)
    for epoch, offset in ((2, 10), (3, 20), (7, 30)):
        cache.assign(epoch, offset)
    return cache


def test_the_file_is_kafka_s(cache: LeaderEpochCache, tmp_path: Path) -> None:
    cache.flush()
    assert (tmp_path / LEADER_EPOCHS).read_text() == "0\n3\n2 10\n3 20\n7 30\n"
    assert LeaderEpochCache.load(str(tmp_path), disk=DISK).entries == cache.entries


def test_nothing_is_written_before_a_flush_nor_without_a_change(cache: LeaderEpochCache, tmp_path: Path) -> None:
    assert not (tmp_path / LEADER_EPOCHS).exists()
    cache.flush()
    (tmp_path / LEADER_EPOCHS).unlink()
    assert not cache.assign(7, 35)
    cache.flush()
    assert not (tmp_path / LEADER_EPOCHS).exists()


def test_a_log_without_the_file_has_no_epochs(tmp_path: Path) -> None:
    cache = LeaderEpochCache.load(str(tmp_path), disk=DISK)
    assert cache.latest_epoch is None
    assert cache.epoch_for_offset(0) is None
    assert not cache.dirty


def test_garbage_is_an_error(tmp_path: Path) -> None:
    (tmp_path / LEADER_EPOCHS).write_text("0\n1\n-3 0\n")
    with pytest.raises(CorruptCheckpoint, match="line 3: '-3 0' is not '<epoch> <start offset>'"):
        LeaderEpochCache.load(str(tmp_path), disk=DISK)


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, (-1, -1)),
        (1, (1, 10)),  # older than all: itself, and where the oldest begins
        (2, (2, 20)),
        (3, (3, 30)),
        (5, (3, 30)),  # an epoch in which nothing was written
        (7, (7, 44)),  # the newest ends with the log
        (8, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_begins(cache: LeaderEpochCache, epoch: int, answer: tuple[int, int]) -> None:
    assert cache.end_offset_for(epoch, 44) == answer


def test_no_epoch_ends_in_an_empty_log(tmp_path: Path) -> None:
    assert LeaderEpochCache(str(tmp_path), disk=DISK).end_offset_for(0, 0) == (-1, -1)


@pytest.mark.parametrize(("offset", "epoch"), [(9, None), (10, 2), (19, 2), (20, 3), (29, 3), (30, 7), (1000, 7)])
def test_an_offset_has_the_epoch_it_was_written_in(cache: LeaderEpochCache, offset: int, epoch: int | None) -> None:
    assert cache.epoch_for_offset(offset) == epoch


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        ((7, 30), [(2, 10), (3, 20), (7, 30)]),
        ((7, 40), [(2, 10), (3, 20), (7, 30)]),
        ((7, 25), [(2, 10), (3, 20), (7, 25)]),
        ((8, 30), [(2, 10), (3, 20), (8, 30)]),
        ((8, 20), [(2, 10), (8, 20)]),
        ((3, 35), [(2, 10), (3, 35)]),
        ((1, 5), [(1, 5)]),
    ],
)
def test_a_new_entry_drops_those_it_contradicts(
    cache: LeaderEpochCache, entry: tuple[int, int], left: list[tuple[int, int]]
) -> None:
    cache.assign(*entry)
    assert cache.entries == left


@pytest.mark.parametrize(("end", "left"), [(31, 3), (30, 2), (21, 2), (20, 1), (10, 0), (0, 0), (-1, 3)])
def test_truncation_from_the_end(cache: LeaderEpochCache, end: int, left: int) -> None:
    assert cache.truncate_from_end(end) == (left < 3)
    assert len(cache.entries) == left


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (5, [(2, 10), (3, 20), (7, 30)]),
        (10, [(2, 10), (3, 20), (7, 30)]),
        (15, [(2, 15), (3, 20), (7, 30)]),
        (20, [(3, 20), (7, 30)]),
        (99, [(7, 99)]),
    ],
)
def test_truncation_from_the_start_keeps_the_epoch_it_falls_in(
    cache: LeaderEpochCache, start: int, left: list[tuple[int, int]]
) -> None:
    cache.truncate_from_start(start)
    assert cache.entries == left


def test_a_cache_follows_its_directory(cache: LeaderEpochCache, tmp_path: Path) -> None:
    (tmp_path / "moved").mkdir()
    cache.relocate(str(tmp_path / "moved"))
    cache.flush()
    assert (tmp_path / "moved" / LEADER_EPOCHS).exists()


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 40)), max_size=20))
def test_epochs_and_offsets_always_grow(assignments: list[tuple[int, int]]) -> None:
    cache = LeaderEpochCache("unwritten", disk=DISK)
    for epoch, offset in assignments:
        cache.assign(epoch, offset)
        assert cache.entries == sorted(set(cache.entries))
        assert len({entry.start_offset for entry in cache.entries}) == len(cache.entries)
        assert cache.latest_epoch == epoch


def test_after_an_unclean_stop_the_batches_count_and_not_an_epoch_that_was_cut_off(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, batch("a"), leader_epoch=0)
    log.assign_leader_epoch(2, 1)
    log.flush(NOW_MS)
    log.truncate_to(1, NOW_MS)
    append(
        log,
        memoryview(build(records("b"), base_offset=1, partition_leader_epoch=1)),
        origin=Origin.REPLICATION,
        leader_epoch=3,
    )
    again = open_log(tmp_path / "orders-0", clean=False, recovery_point=1)
    assert again.epochs.entries == [(0, 0), (1, 1)]
    assert again.last_leader_epoch == 1
