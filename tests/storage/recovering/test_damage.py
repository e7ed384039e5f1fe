"""Tests damaged sealed segments: they can be read up to the damage, and after it if the index leads there."""

from __future__ import annotations

from pathlib import Path
from struct import pack_into

import pytest

from protocol.errors import ErrorCode
from storage.log import Log
from tests.storage.writing import NOW_MS, config, error_of, fetch, headers, open_log, read_all, values, write

LENGTH, MAGIC = 8, 16


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = open_log(tmp_path / "orders-0", config(index_interval_bytes=1))
    for value in "abcdef":
        write(log, value)
    log.roll(NOW_MS)
    return log


def damage(log: Log, offset: int, at: int, layout: str, value: int) -> None:
    """Overwrites a field of the batch at this offset."""
    size = headers(log)[0].size_bytes
    path = Path(log.segments.first.path)
    content = bytearray(path.read_bytes())
    pack_into(layout, content, size * offset + at, value)
    path.write_bytes(content)
    log.segments.first.release()


@pytest.mark.parametrize(("at", "layout", "value"), [
    (LENGTH, ">i", -5),
    (LENGTH, ">i", 0),
    (MAGIC, ">b", 9),
    (MAGIC, ">b", -1),
])  # fmt: skip
def test_what_is_before_the_damage_can_be_read_and_the_damage_says_what_it_is(
    log: Log, at: int, layout: str, value: int
) -> None:
    damage(log, 2, at, layout, value)
    assert values([*fetch(log, 0, 1), *fetch(log, 1, 1)]) == ["a", "b"]
    with error_of(ErrorCode.CORRUPT_MESSAGE):
        log.read(2, 1)


def test_what_is_after_the_damage_is_found_by_the_index(log: Log) -> None:
    damage(log, 2, LENGTH, ">i", -5)
    assert values(read_all(log, 4, max_bytes=1)) == ["e", "f"]


def test_after_a_crash_below_the_recovery_point_nothing_is_cut(log: Log, tmp_path: Path) -> None:
    damage(log, 2, LENGTH, ">i", -5)
    again = open_log(tmp_path / "orders-0", log.config, clean=False, recovery_point=6)
    assert again.log_end_offset == 6
    assert values(read_all(again, 4, max_bytes=1)) == ["e", "f"]
