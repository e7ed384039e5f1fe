"""The small text files beside the logs: offset checkpoints, the clean-shutdown marker, a partition's topic id.

Formats and names are Apache Kafka's (CheckpointFile, OffsetCheckpointFile, CleanShutdownFileHandler,
PartitionMetadataFile). A malformed file raises `CorruptCheckpoint`, which names file and line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from protocol.types import NO_UUID, TopicPartition, Uuid, uuid_from_text, uuid_to_text
from storage.disk import Disk

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
PARTITION_METADATA = "partition.metadata"

VERSION = 0
"""Version of checkpoints, partition.metadata and the clean-shutdown marker. Kafka has never used another version."""

T = TypeVar("T")


class CorruptCheckpoint(Exception):
    """A malformed checkpoint file: its path, the line number (from 1), the line's text and the expected text."""

    def __init__(self, path: str, line_number: int, line: str, expected: str) -> None:
        super().__init__(f"{path}, line {line_number}: {line!r} is not {expected}")
        self.path = path
        self.line_number = line_number


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """Returns the offsets of an offset checkpoint, which are empty without a file. Raises CorruptCheckpoint."""
    return dict(read_entries(disk, path, _parse_offset, "'<topic> <partition> <offset>'"))


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replaces an offset checkpoint, atomically and durably."""
    write_entries(disk, path, [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()])


def read_entries(disk: Disk, path: str, parse: Callable[[str], T], expected: str) -> list[T]:
    """Returns the entries of a checkpoint file, whose lines are the version, the number of entries and each entry.

    A missing or empty file has no entries, as in Kafka. `parse` raises ValueError for a line that is not `expected`.
    """
    lines = _read_lines(disk, path)
    if not lines:
        return []
    if lines[0] != str(VERSION):
        raise CorruptCheckpoint(path, 1, lines[0], f"version {VERSION}")
    if len(lines) == 1:
        return []
    count = _parse_line(path, 2, lines[1], parse_number, "the number of entries")
    entries = [_parse_line(path, number, line, parse, expected) for number, line in enumerate(lines[2:], 3)]
    if len(entries) != count:
        raise CorruptCheckpoint(path, 2, lines[1], f"the number of entries that follow, {len(entries)}")
    return entries


def write_entries(disk: Disk, path: str, entries: Iterable[str], *, sync: bool = True) -> None:
    """Replaces a checkpoint with these lines, atomically, and durably if `sync`."""
    lines = list(entries)
    text = "\n".join([str(VERSION), str(len(lines)), *lines, ""])
    disk.write_atomically(path, text.encode(), sync=sync)


def write_clean_shutdown(disk: Disk, directory: str, broker_epoch: int = -1) -> None:
    """Marks a log directory as cleanly closed. The next start sends this session's broker epoch to the controller
    (KIP-966)."""
    content = f'{{"version":{VERSION},"brokerEpoch":{broker_epoch}}}'
    disk.write_file(os.path.join(directory, CLEAN_SHUTDOWN), content.encode())


def has_clean_shutdown(disk: Disk, directory: str) -> bool:
    """True if the log directory was cleanly closed: its marker exists, whatever it contains."""
    return disk.exists(os.path.join(directory, CLEAN_SHUTDOWN))


def read_clean_shutdown(disk: Disk, directory: str) -> int | None:
    """Returns the broker epoch of the session that closed the directory cleanly. None without a marker, or if the
    marker has no epoch."""
    try:
        content = json.loads(disk.read_file(os.path.join(directory, CLEAN_SHUTDOWN)))
        return int(content["brokerEpoch"])
    except (FileNotFoundError, ValueError, TypeError, KeyError, OverflowError):
        return None


def delete_clean_shutdown(disk: Disk, directory: str) -> None:
    """Deletes the marker durably, before anything is written: a stop that leaves no marker was a crash.

    Syncs the directory even without a marker: an earlier start may have deleted it and crashed before the sync.
    """
    disk.unlink(os.path.join(directory, CLEAN_SHUTDOWN), missing_ok=True)
    disk.fsync_dir(directory)


def read_partition_metadata(disk: Disk, log_directory: str) -> Uuid | None:
    """Returns the topic id in a partition's folder, or None without partition.metadata. Raises CorruptCheckpoint."""
    path = os.path.join(log_directory, PARTITION_METADATA)
    lines = _read_lines(disk, path)
    if not lines and not disk.exists(path):
        return None
    version_line, topic_id_line = [*lines, "", ""][:2]
    _parse_line(path, 1, version_line, lambda line: parse_number(_value(line, "version")), "'version: 0'")
    return _parse_line(path, 2, topic_id_line, _parse_topic_id, "'topic_id: ' and 22 characters of base64")


def write_partition_metadata(disk: Disk, log_directory: str, topic_id: Uuid, *, sync: bool = True) -> None:
    """Writes the topic id of a partition's folder (KIP-516)."""
    text = f"version: {VERSION}\ntopic_id: {uuid_to_text(topic_id)}"
    disk.write_atomically(os.path.join(log_directory, PARTITION_METADATA), text.encode(), sync=sync)


def sync_partition_metadata(disk: Disk, log_directory: str) -> None:
    """Makes partition.metadata durable, if it exists."""
    path = os.path.join(log_directory, PARTITION_METADATA)
    if disk.exists(path):
        disk.sync_file(path)


def parse_number(text: str) -> int:
    """Parses a number in a checkpoint: ASCII digits and nothing else. Raises ValueError."""
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{text!r} is not a number")
    return int(text)


def _read_lines(disk: Disk, path: str) -> list[str]:
    try:
        content = disk.read_file(path)
    except FileNotFoundError:
        return []
    return content.decode("utf-8", "backslashreplace").splitlines()


def _parse_line(path: str, number: int, line: str, parse: Callable[[str], T], expected: str) -> T:
    try:
        return parse(line)
    except ValueError:
        raise CorruptCheckpoint(path, number, line, expected) from None


def _parse_offset(line: str) -> tuple[TopicPartition, int]:
    topic, partition, offset = line.split()
    return TopicPartition(topic, parse_number(partition)), parse_number(offset)


def _parse_topic_id(line: str) -> Uuid:
    topic_id = uuid_from_text(_value(line, "topic_id"))
    if topic_id == NO_UUID:
        raise ValueError("the zero UUID is not a topic id")
    return topic_id


def _value(line: str, name: str) -> str:
    """Returns the value of a `name: value` line."""
    key, separator, value = line.partition(":")
    if key != name or not separator:
        raise ValueError(f"{name} is missing")
    return value.strip()
