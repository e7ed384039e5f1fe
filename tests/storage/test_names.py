"""Tests the names of files and folders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.types import TopicPartition
from storage.names import (
    Folder,
    FolderKind,
    base_offset_of,
    folder_name,
    marked_folder_name,
    parse_folder,
    segment_file,
)

UNIQUE = "0123456789abcdef0123456789abcdef"
TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=249)


def test_a_segment_s_files_have_twenty_digits() -> None:
    assert segment_file(42, ".log") == "00000000000000000042.log"
    assert base_offset_of("00000000000000000042.log.deleted") == 42


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata", "x.log", ".log", "-1.log"])
def test_other_files_have_no_offset(name: str) -> None:
    assert base_offset_of(name) is None


@pytest.mark.parametrize(
    ("name", "topic", "partition", "kind"),
    [
        ("a-1", "a", 1, FolderKind.CURRENT),
        ("a-1-0", "a-1", 0, FolderKind.CURRENT),
        ("a.b_c-12", "a.b_c", 12, FolderKind.CURRENT),
        ("a-delete-0", "a-delete", 0, FolderKind.CURRENT),
        (f"a.b-1.{UNIQUE}-delete", "a.b", 1, FolderKind.DELETE),
        (f"a-1-0.{UNIQUE}-future", "a-1", 0, FolderKind.FUTURE),
        (f"a-0.{UNIQUE}-stray", "a", 0, FolderKind.STRAY),
    ],
)
def test_a_folder_says_whose_it_is(name: str, topic: str, partition: int, kind: FolderKind) -> None:
    assert parse_folder(name) == Folder(TopicPartition(topic, partition), kind)


@pytest.mark.parametrize("name", ["lost+found", "a", "-1", "a-", "a-x", "a-0-delete", "a-0.5", "a-1e3", "a-²"])
def test_other_folders_are_no_partition_s(name: str) -> None:
    assert parse_folder(name) is None


@given(TOPICS, st.integers(0, 2**31 - 1))
def test_every_partition_has_a_folder_of_its_own(topic: str, partition: int) -> None:
    place = TopicPartition(topic, partition)
    assert parse_folder(folder_name(place)) == Folder(place, FolderKind.CURRENT)


@given(TOPICS, st.integers(0, 2**31 - 1))
def test_a_deleted_folder_s_name_is_one_that_file_systems_take(topic: str, partition: int) -> None:
    name = marked_folder_name(TopicPartition(topic, partition), FolderKind.DELETE, UNIQUE)
    assert len(name) <= 255
    assert name.endswith(f"-{partition}.{UNIQUE}-delete")
