"""Formats directories; formatted directories are not changed.

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
"""Names that an empty directory may have: the lock file, and the folder that a file system makes in its root."""

NAMED: Final = 5
"""Maximum number of unexpected files that the warning names."""


class AlreadyFormatted(Exception):
    """A directory is already formatted; the text names it."""


class NodeFormat(NamedTuple):
    """A node's directories and their new content."""

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
    """Formats the node's directories under their locks. Yields a line for each directory, and a warning if it is not
    empty. Raises AlreadyFormatted if a directory is formatted and `ignore_formatted` is False; also WrongOwner,
    CorruptCheckpoint, DirectoryInUse, OSError."""
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
    """Yields a warning about files in a directory before it is formatted: the path may be wrong, or have a former
    cluster's data, whose partition folders a broker would use as its own."""
    names = sorted(set(disk.listdir(directory)) - EXPECTED)
    if names:
        named = ", ".join(names[:NAMED])
        rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"Log directory {directory} is not empty; its content stays: {named}{rest}."


def _format(node: NodeFormat, directory: str, disk: Disk, new_uuid: Callable[[], Uuid], now_ms: int) -> None:
    has_voters = node.voters is not None and directory == node.metadata_dir
    voters = voters_record(node.voters, node.listener) if has_voters and node.voters is not None else None
    format_directory(directory, node.new, voters, disk, now_ms)
    directory_id = _own_directory_id(node) if has_voters else None
    write_meta_properties(disk, directory, MetaProperties(node.cluster_id, node.node_id, directory_id or new_uuid()))


def _own_directory_id(node: NodeFormat) -> Uuid | None:
    """Returns the id of this node's metadata directory among the voters; None if the node is not a voter."""
    return next((voter.directory_id for voter in node.voters or () if voter.node_id == node.node_id), None)


def _kind(node: NodeFormat, directory: str) -> str:
    if directory != node.metadata_dir:
        return "data directory"
    if node.voters is None:
        return "metadata directory"
    return "dynamic metadata directory" if _own_directory_id(node) is None else "dynamic metadata voter directory"


def _release(node: NodeFormat) -> str:
    return release_of_level(node.new.metadata_version)
