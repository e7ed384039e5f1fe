"""Tests meta.properties."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

from protocol.types import uuid_from_text
from storage.checkpoint import CorruptCheckpoint
from storage.disk import OsDisk
from storage.meta_properties import META_PROPERTIES, MetaProperties, read_meta_properties, write_meta_properties

DISK = OsDisk()
DIRECTORY_ID = uuid_from_text("5BZ1oqBgQ4e1X7pCzHiGjQ")


def test_the_file_is_kafka_s(tmp_path: Path) -> None:
    write_meta_properties(DISK, str(tmp_path), MetaProperties("4L6g3nShT-eMCtK--X86sw", 3, DIRECTORY_ID))
    assert (tmp_path / META_PROPERTIES).read_text() == (
        "cluster.id=4L6g3nShT-eMCtK--X86sw\ndirectory.id=5BZ1oqBgQ4e1X7pCzHiGjQ\nnode.id=3\nversion=1\n"
    )


def test_a_file_of_kafka_s_is_read(tmp_path: Path) -> None:
    (tmp_path / META_PROPERTIES).write_text(
        "#\n#Thu Jun 18 09:12:44 UTC 2026\nversion=1\nnode.id = 1\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
    )
    assert read_meta_properties(DISK, str(tmp_path)) == MetaProperties("4L6g3nShT-eMCtK--X86sw", 1, None)


@pytest.mark.parametrize("cluster_id", ["plain", "a:b=c#d!e", "back\\slash", "two words"])
def test_any_cluster_id_comes_back(tmp_path: Path, cluster_id: str) -> None:
    written = MetaProperties(cluster_id, 0, DIRECTORY_ID)
    write_meta_properties(DISK, str(tmp_path), written)
    assert read_meta_properties(DISK, str(tmp_path)) == written


def test_a_directory_that_was_never_formatted_has_none(tmp_path: Path) -> None:
    assert read_meta_properties(DISK, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: '' is not 'version=1'"),
        ("version=0\nbroker.id=1\n", "line 1: 'version=0' is not 'version=1'"),
        ("version=1\nnode.id=1\n", "line 1: '' is not 'cluster.id=' and the cluster's id"),
        ("version=1\ncluster.id=x\nnode.id=one\n", "line 3: 'node.id=one' is not 'node.id=' and a number"),
        ("version=1\ncluster.id=x\nnode.id=1\ndirectory.id=?\n", "line 4: 'directory.id=?' is not 'directory.id='"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / META_PROPERTIES
    path.write_text(text)
    with pytest.raises(CorruptCheckpoint) as error:
        read_meta_properties(DISK, str(tmp_path))
    assert str(error.value).startswith(f"{path}, {message}")


def test_no_damaged_byte_makes_it_another_directory_s(tmp_path: Path) -> None:
    """Changes each byte: the file is rejected, or one of its three values has another character."""
    written = MetaProperties("4L6g3nShT-eMCtK--X86sw", 3, DIRECTORY_ID)
    write_meta_properties(DISK, str(tmp_path), written)
    path = tmp_path / META_PROPERTIES
    sound = path.read_bytes()
    for position, damaged in product(range(len(sound)), b"\x00\n #=X\xff"):
        path.write_bytes(sound[:position] + bytes([damaged]) + sound[position + 1 :])
        with suppress(CorruptCheckpoint):
            properties = read_meta_properties(DISK, str(tmp_path))
            assert properties is not None
            assert properties.directory_id is not None, f"byte {position} is {damaged}"
            assert sum(one != other for one, other in zip(properties, written, strict=True)) <= 1


@pytest.mark.parametrize("size_bytes", range(100))
def test_a_file_that_is_cut_is_refused(tmp_path: Path, size_bytes: int) -> None:
    write_meta_properties(DISK, str(tmp_path), MetaProperties("4L6g3nShT-eMCtK--X86sw", 3, DIRECTORY_ID))
    path = tmp_path / META_PROPERTIES
    path.write_bytes(path.read_bytes()[:-1][:-1][:size_bytes])
    with pytest.raises(CorruptCheckpoint):
        read_meta_properties(DISK, str(tmp_path))
