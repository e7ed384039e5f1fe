"""Formats directories: those that are formatted already stay as they are.

Source: Kafka's Formatter.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from broker.disks.lock import LOCK_FILE, DirectoryLock
from coordinator.cluster.brokers.releases import release_of_level
from coordinator.cluster.formatting import NewMetadata, check_owner, format_directory
from coordinator.cluster.voters import InitialVoter, voters_record
from protocol.types import Uuid
from storage.disk import Disk
from storage.meta_properties import MetaProperties, read_meta_properties, write_meta_properties

EXPECTED: Final = frozenset({LOCK_FILE, "lost+found"})
"""Names in an empty directory: the lock of the moment, and what a file system makes in its root."""

NAMED: Final = 5
"""Strange files of a directory that are named."""


class AlreadyFormatted(Exception):
    """A directory is formatted; the text names it."""


class NodeFormat(NamedTuple):
    """A node's directories, and what is to be in them."""

    cluster_id: str
    node_id: int
    directories: tuple[str, ...]
    metadata_dir: str
    new: NewMetadata
    voters: tuple[InitialVoter, ...] | None
    """The voters of a dynamic quorum."""
    listener: str
    """The name of the voters' listener."""


def format_node(
    node: NodeFormat, *, ignore_formatted: bool, disk: Disk, new_uuid: Callable[[], Uuid], now_ms: int
) -> Iterator[str]:
    """Formats the node's directories while nobody uses them; yields a line before each, and
    for each that is not empty. Raises AlreadyFormatted where
    one is formatted and that is not to be ignored; WrongOwner, CorruptCheckpoint, DirectoryInUse, OSError."""
    with contextlib.ExitStack() as stack:
        for directory in node.directories:
            stack.callback(DirectoryLock(directory).release)
        properties = {directory: read_meta_properties(disk, directory) for directory in node.directories}
        check_owner(properties, node.node_id, node.cluster_id)
        empty = [directory for directory in node.directories if properties[directory] is None]
        if len(empty) < len(node.directories) and not ignore_formatted:
            formatted = next(directory for directory in node.directories if properties[directory] is not None)
            raise AlreadyFormatted(
                f"Log directory {formatted} is already formatted. Use --ignore-formatted to ignore this directory and "
                "format the others."
            )
        if not empty:
            yield "All of the log directories are already formatted."
        for directory in empty:
            yield from _strange(directory, disk)
            yield f"Formatting {_kind(node, directory)} {directory} with metadata.version {_release(node)}."
            _format(node, directory, disk, new_uuid, now_ms)


def _strange(directory: str, disk: Disk) -> Iterator[str]:
    """Yields a line about files that are in a directory before it is formatted: a mistyped path, or a former cluster's
    data, of which a broker takes folders of partitions for its own."""
    names = sorted(set(disk.listdir(directory)) - EXPECTED)
    if names:
        named = ", ".join(names[:NAMED])
        rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"Log directory {directory} is not empty; what is in it stays: {named}{rest}."


def _format(node: NodeFormat, directory: str, disk: Disk, new_uuid: Callable[[], Uuid], now_ms: int) -> None:
    has_voters = node.voters is not None and directory == node.metadata_dir
    voters = voters_record(node.voters, node.listener) if has_voters and node.voters is not None else None
    format_directory(directory, node.new, voters, disk, now_ms)
    directory_id = _own_directory_id(node) if has_voters else None
    write_meta_properties(disk, directory, MetaProperties(node.cluster_id, node.node_id, directory_id or new_uuid()))


def _own_directory_id(node: NodeFormat) -> Uuid | None:
    """Returns the id that the voters give to this node's metadata directory; None where it is none of them."""
    return next((voter.directory_id for voter in node.voters or () if voter.node_id == node.node_id), None)


def _kind(node: NodeFormat, directory: str) -> str:
    if directory != node.metadata_dir:
        return "data directory"
    if node.voters is None:
        return "metadata directory"
    return "dynamic metadata directory" if _own_directory_id(node) is None else "dynamic metadata voter directory"


def _release(node: NodeFormat) -> str:
    return release_of_level(node.new.metadata_version)
