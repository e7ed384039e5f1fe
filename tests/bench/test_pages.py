"""Tests that memory is backed and kept for rounds, but not more than is available."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from bench import pages


@pytest.mark.parametrize(
    ("meminfo", "size"),
    [("MemTotal: 9 kB\nMemAvailable:   2048 kB\n", 2 * 1024 * 1024), ("MemTotal: 9 kB\n", 0), ("", 0)],
)
def test_available_memory_is_read(meminfo: str, size: int) -> None:
    assert pages.available_bytes(meminfo) == size


@pytest.mark.parametrize(("size_bytes", "backed"), [(-1, 0), (0, 0), (3 * mmap.PAGESIZE + 1, 3 * mmap.PAGESIZE)])
def test_whole_pages_are_backed(size_bytes: int, backed: int) -> None:
    with pages.backed(size_bytes) as actual:
        assert actual == backed


def resident_bytes() -> int:
    rollup = Path("/proc/self/smaps_rollup").read_text()
    return int(next(line for line in rollup.splitlines() if line.startswith("Anonymous:")).split()[1]) * pages.KIB


def test_a_page_of_each_block_stays_in_use() -> None:
    blocks = 16
    before = resident_bytes()
    with pages.backed(blocks * pages.BLOCK_BYTES):
        grown = resident_bytes() - before
    assert blocks * mmap.PAGESIZE <= grown < 2 * pages.BLOCK_BYTES
