"""Tests the znodes of a group, some of which have invalid content."""

from __future__ import annotations

from typing import Any

import pytest
from kazoo.exceptions import NoNodeError

from cli.exits import MISUSED
from commands.errors import CommandError
from commands.zookeeper.znodes import read_group, zookeeper


class Tree:
    """The part of a ZooKeeper client that reads."""

    def __init__(self, **offsets: bytes) -> None:
        self.offsets = offsets

    def get_children(self, path: str) -> list[str]:
        below = {"/consumers/g/offsets": ["t"], "/consumers/g/offsets/t": [*self.offsets]}
        if path not in below:
            raise NoNodeError
        return below[path]

    def get(self, path: str) -> tuple[bytes, None]:
        return self.offsets[path.rpartition("/")[2]], None


def read(**offsets: bytes) -> dict[Any, int]:
    return read_group(Tree(**offsets), "g").offsets  # all that is asked of it


def test_offsets_are_read_by_partition() -> None:
    assert read(**{"0": b"7", "1": b" 9223372036854775807\n"}) == {("t", 0): 7, ("t", 1): (1 << 63) - 1}


def test_what_is_no_partition_is_passed_over() -> None:
    assert read(**{"x": b"1", "-1": b"1", "٣": b"1", "9" * 5_000: b"1", "2": b""}) == {}


@pytest.mark.parametrize("data", [b"many", b"-1", b"9223372036854775808", b"9" * 5_000, b"1_0", "٣".encode(), b"\xff"])
def test_what_is_no_offset_is_an_error(data: bytes) -> None:
    with pytest.raises(CommandError, match="/consumers/g/offsets/t/0: "):
        read(**{"0": data})


@pytest.mark.parametrize("connect", ["zk:port", "[::1", ""])
def test_an_address_that_is_none_is_told(connect: str) -> None:
    expected = r"--zookeeper .*: expected HOST:PORT,HOST:PORT…"
    with pytest.raises(CommandError, match=expected) as refused, zookeeper(connect):
        pass
    assert refused.value.status == MISUSED
