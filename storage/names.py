"""Names of what a log directory holds: segment files, and the folders of partitions in each of their states.

All of them are Apache Kafka's (classes LogFileUtils and LocalLog).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from protocol.types import TopicPartition

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
INDEXES = (INDEX, TIME_INDEX, TXN_INDEX)

CLEANED = ".cleaned"
"""A file that compaction or truncation is still writing: worthless after a crash."""
SWAP = ".swap"
"""A finished file that is about to take the place of those it was made from."""
DELETED = ".deleted"
"""A file that readers may still hold: to be removed after file.delete.delay.ms."""

METADATA_TOPIC = "__cluster_metadata"
MAX_FOLDER_NAME = 255
"""NAME_MAX of every file system in use: a 249-character topic leaves no room for the suffix of a deleted folder."""


class FolderKind(Enum):
    """The state of a partition's folder, as its name ends."""

    CURRENT = ""
    FUTURE = "-future"
    DELETE = "-delete"
    STRAY = "-stray"


_MARKED = (FolderKind.FUTURE, FolderKind.DELETE, FolderKind.STRAY)


class Folder(NamedTuple):
    """The parts of a folder's name."""

    topic_partition: TopicPartition
    kind: FolderKind


def segment_file(base_offset: int, extension: str) -> str:
    """`00000000000000000042.log` and its kin."""
    return f"{base_offset:020d}{extension}"


def base_offset_of(name: str) -> int | None:
    """Returns the offset that a file's name begins with; None when it begins with something else."""
    stem = name.partition(".")[0]
    return int(stem) if stem.isdecimal() and stem.isascii() else None


def folder_name(topic_partition: TopicPartition) -> str:
    """`<topic>-<partition>`."""
    return f"{topic_partition.topic}-{topic_partition.partition}"


def marked_folder_name(topic_partition: TopicPartition, kind: FolderKind, unique: str) -> str:
    """`<topic>-<partition>.<32 hex digits>-delete`; a topic too long for that is cut, as the name is not read back."""
    ending = f"-{topic_partition.partition}.{unique}{kind.value}"
    room = MAX_FOLDER_NAME - len(ending) if kind is not FolderKind.FUTURE else len(topic_partition.topic)
    return topic_partition.topic[:room] + ending


def parse_folder(name: str) -> Folder | None:
    """Returns the parts of a partition folder's name: a topic may have dots and dashes. None for a folder that is no
    partition's."""
    kind = next((kind for kind in _MARKED if name.endswith(kind.value)), FolderKind.CURRENT)
    if kind in _MARKED:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return None
    topic, dash, partition = name.rpartition("-")
    if not (topic and dash and partition.isdecimal() and partition.isascii()):
        return None
    return Folder(TopicPartition(topic, int(partition)), kind)
