"""Tests offset checkpoints, the clean-shutdown marker and partition.metadata."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.types import TopicPartition, uuid_from_text
from storage.checkpoint import (
    CLEAN_SHUTDOWN,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    CorruptCheckpoint,
    delete_clean_shutdown,
    has_clean_shutdown,
    read_clean_shutdown,
    read_offsets,
    read_partition_metadata,
    write_clean_shutdown,
    write_offsets,
    write_partition_metadata,
)
from storage.disk import OsDisk

DISK = OsDisk()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / RECOVERY_POINTS


def test_an_offset_checkpoint_is_kafka_s(path: Path) -> None:
    write_offsets(DISK, str(path), {TopicPartition("orders", 0): 42, TopicPartition("__consumer_offsets", 49): 2**40})
    assert path.read_text() == "0\n2\norders 0 42\n__consumer_offsets 49 1099511627776\n"


def test_no_file_and_an_empty_file_have_no_offsets(path: Path) -> None:
    assert read_offsets(DISK, str(path)) == {}
    path.write_text("")
    assert read_offsets(DISK, str(path)) == {}


class Hasty(OsDisk):
    """A disk that doesn't wait for the device, for tests with many rounds."""

    def fsync(self, handle: int) -> None: ...

    def fsync_dir(self, path: str) -> None: ...


TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=40)
PARTITIONS = st.builds(TopicPartition, TOPICS, st.integers(0, 99))


@given(st.dictionaries(PARTITIONS, st.integers(0, 2**63 - 1)))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, offsets: dict[TopicPartition, int]) -> None:
    path = str(tmp_path_factory.getbasetemp() / "round-trip")
    write_offsets(Hasty(), path, offsets)
    assert read_offsets(Hasty(), path) == offsets


@given(st.binary(max_size=60) | st.text("0123 orders\n-", max_size=60).map(str.encode))
def test_any_bytes_are_offsets_or_an_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any-bytes"
    path.write_bytes(content)
    with contextlib.suppress(CorruptCheckpoint):
        read_offsets(DISK, str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n0\n", "line 1: '1' is not version 0"),
        ("garbage", "line 1: 'garbage' is not version 0"),
        ("0\nmany\n", "line 2: 'many' is not the number of entries"),
        ("0\n1\norders 0\n", "line 3: 'orders 0' is not '<topic> <partition> <offset>'"),
        ("0\n1\norders 0 1_0\n", "line 3: 'orders 0 1_0' is not '<topic> <partition> <offset>'"),
        ("0\n1\norders zero 1\n", "line 3: 'orders zero 1' is not '<topic> <partition> <offset>'"),
        ("0\n2\norders 0 1\n", "line 2: '2' is not the number of entries that follow, 1"),
        ("0\n1\n\xff\xfe\n", "line 3: "),
    ],
)
def test_garbage_is_an_error_that_names_file_and_line(path: Path, text: str, message: str) -> None:
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(CorruptCheckpoint) as error:
        read_offsets(DISK, str(path))
    assert str(error.value).startswith(f"{path}, {message}")


def test_the_clean_shutdown_marker_is_kafka_s(tmp_path: Path) -> None:
    write_clean_shutdown(DISK, str(tmp_path), 17)
    assert (tmp_path / CLEAN_SHUTDOWN).read_text() == '{"version":0,"brokerEpoch":17}'
    assert has_clean_shutdown(DISK, str(tmp_path))
    assert read_clean_shutdown(DISK, str(tmp_path)) == 17


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"version":0,"brokerEpoch":null}', "\0\0"])
def test_an_older_or_odd_marker_still_says_that_the_stop_was_clean(tmp_path: Path, content: str) -> None:
    (tmp_path / CLEAN_SHUTDOWN).write_text(content)
    assert has_clean_shutdown(DISK, str(tmp_path))
    assert read_clean_shutdown(DISK, str(tmp_path)) is None


def test_the_marker_goes(tmp_path: Path) -> None:
    assert read_clean_shutdown(DISK, str(tmp_path)) is None
    write_clean_shutdown(DISK, str(tmp_path))
    delete_clean_shutdown(DISK, str(tmp_path))
    delete_clean_shutdown(DISK, str(tmp_path))
    assert not has_clean_shutdown(DISK, str(tmp_path))


def test_partition_metadata_is_kafka_s(tmp_path: Path) -> None:
    topic_id = uuid_from_text("5BZ1oqBgQ4e1X7pCzHiGjQ")
    write_partition_metadata(DISK, str(tmp_path), topic_id)
    assert (tmp_path / PARTITION_METADATA).read_text() == "version: 0\ntopic_id: 5BZ1oqBgQ4e1X7pCzHiGjQ"
    assert read_partition_metadata(DISK, str(tmp_path)) == topic_id


def test_a_folder_without_partition_metadata_has_no_topic_id(tmp_path: Path) -> None:
    assert read_partition_metadata(DISK, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: '' is not 'version: 0'"),
        ("version: x\n", "line 1: 'version: x' is not 'version: 0'"),
        ("version: -1\n", "line 1: 'version: -1' is not 'version: 0'"),
        ("version: 0\n", "line 2: '' is not 'topic_id: '"),
        ("version: 0\ntopic_id: short", "line 2: 'topic_id: short' is not 'topic_id: '"),
        ("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "line 2: 'topic_id: AAAAAAAAAAAAAAAAAAAAAA' is not"),
    ],
)
def test_damaged_partition_metadata_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / PARTITION_METADATA
    path.write_text(text)
    with pytest.raises(CorruptCheckpoint) as error:
        read_partition_metadata(DISK, str(tmp_path))
    assert str(error.value).startswith(f"{path}, {message}")
