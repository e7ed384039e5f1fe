"""Tests that memory is backed before a round, but not more than is available."""

from __future__ import annotations

import mmap

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
    assert pages.back(size_bytes) == backed
