"""Names in a log directory: segment files, and partition folders in each of their states.

All names are Apache Kafka's (classes LogFileUtils and LocalLog).
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
"""Suffix of a file that compaction or truncation is still writing. A start after a crash deletes it."""
SWAP = ".swap"
"""Suffix of a finished file that is about to replace its source files."""
DELETED = ".deleted"
"""Suffix of a removed file that readers may still use. It is deleted after file.delete.delay.ms."""

METADATA_TOPIC = "__cluster_metadata"
MAX_FOLDER_NAME = 255
"""NAME_MAX of every file system in use: a 249-character topic leaves no room for the suffix of a deleted folder."""


class FolderKind(Enum):
    """The state of a partition's folder, which is the suffix of its name."""

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
    """Returns the name of a segment's file, such as `00000000000000000042.log`."""
    return f"{base_offset:020d}{extension}"


def base_offset_of(name: str) -> int | None:
    """Returns the offset at the start of a file's name, or None."""
    stem = name.partition(".")[0]
    return int(stem) if stem.isdecimal() and stem.isascii() else None


def folder_name(topic_partition: TopicPartition) -> str:
    """Returns `<topic>-<partition>`."""
    return f"{topic_partition.topic}-{topic_partition.partition}"


def marked_folder_name(topic_partition: TopicPartition, kind: FolderKind, unique: str) -> str:
    """Returns `<topic>-<partition>.<32 hex digits>-delete`, for example. Cuts a topic that is too long, except in the
    name of a future log, which is parsed later."""
    ending = f"-{topic_partition.partition}.{unique}{kind.value}"
    room = MAX_FOLDER_NAME - len(ending) if kind is not FolderKind.FUTURE else len(topic_partition.topic)
    return topic_partition.topic[:room] + ending


def parse_folder(name: str) -> Folder | None:
    """Returns the parts of a partition folder's name, in which the topic may have dots and dashes; None for any other
    folder."""
    kind = next((kind for kind in _MARKED if name.endswith(kind.value)), FolderKind.CURRENT)
    if kind in _MARKED:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return None
    topic, dash, partition = name.rpartition("-")
    if not (topic and dash and partition.isdecimal() and partition.isascii()):
        return None
    return Folder(TopicPartition(topic, int(partition)), kind)
