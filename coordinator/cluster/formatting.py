"""Whose log directories these are; those that are nobody's become this node's, as `kafka-storage format` makes them.

Source: Kafka's Formatter, MetaPropertiesEnsemble and DirectoryId.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from coordinator.cluster.brokers.features import LATEST_METADATA_VERSION, bootstrap_records
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.quorum import FOLDER, KRAFT_VERSION, sole_voter
from coordinator.cluster.snapshot import BOOTSTRAP, SnapshotId, snapshot_path, write_snapshot
from protocol.records.control import KRaftVersionRecord
from protocol.types import Uuid, uuid_to_text
from storage.disk import Disk
from storage.meta_properties import META_PROPERTIES, MetaProperties, read_meta_properties, write_meta_properties

FIRST_FREE_UUID = 100
"""Kafka keeps the smaller ones for itself: no directory, lost directory, the metadata topic …"""


class WrongOwner(Exception):
    """The log directories are not this node's, or not one cluster's: what the operator has to put right."""


class Identity(NamedTuple):
    """Who this node is: its cluster, and the id of each of its log directories, in their order."""

    cluster_id: str
    directory_ids: dict[str, Uuid]


def random_uuid(random_bytes: Callable[[int], bytes]) -> Uuid:
    """A random UUID (version 4) as Kafka draws them: none that it keeps for itself, none that prints as `-…`, which
    command-line tools would take for an option."""
    while True:
        drawn = bytearray(random_bytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        value = bytes(drawn)
        if int.from_bytes(value) >= FIRST_FREE_UUID and not uuid_to_text(value).startswith("-"):
            return value


def claim(
    log_dirs: Sequence[str],
    metadata_dir: str,
    node_id: int,
    controller: Endpoint,
    cluster_id: str | None,
    new_uuid: Callable[[], Uuid],
    *,
    disk: Disk,
    now_ms: int,
) -> Identity:
    """The node's identity, from its directories' meta.properties; directories without one are formatted.

    `cluster_id` is what a new cluster is to be named; None draws a name. A directory that fails has no id then, and is
    for the logs to find out about. Raises WrongOwner, CorruptCheckpoint, and OSError for the metadata's directory.
    """
    properties_by_directory = {metadata_dir: read_meta_properties(disk, metadata_dir)}
    for directory in dict.fromkeys(log_dirs):
        with suppress(OSError):
            disk.mkdir(directory, parents=True)
            properties_by_directory[directory] = read_meta_properties(disk, directory)
    cluster_id = _check(properties_by_directory, node_id, cluster_id) or uuid_to_text(new_uuid())
    directory_ids = {}
    for directory, properties in properties_by_directory.items():
        directory_id = properties.directory_id if properties is not None else None
        if directory_id is None:
            directory_id = new_uuid()
            try:
                _make(directory, disk)
                if directory == metadata_dir and properties is None:
                    _format_metadata(directory, node_id, directory_id, controller, disk, now_ms)
                write_meta_properties(disk, directory, MetaProperties(cluster_id, node_id, directory_id))
            except OSError:
                if directory == metadata_dir:
                    raise
                continue
        directory_ids[directory] = directory_id
    return Identity(cluster_id, directory_ids)


def _make(directory: str, disk: Disk) -> None:
    """Make the directory if it is not there. Its name is durable before it is formatted, and those of the directories
    above it: a start that was cut short may have made them."""
    disk.mkdir(directory, parents=True)
    path = os.path.abspath(directory)
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        with suppress(PermissionError):  # then it is not ours, and was there before
            disk.fsync_dir(path)


def _check(
    properties_by_directory: dict[str, MetaProperties | None], node_id: int, cluster_id: str | None
) -> str | None:
    """The cluster that the formatted directories belong to."""
    for directory, properties in properties_by_directory.items():
        if properties is None:
            continue
        if properties.node_id != node_id:
            raise WrongOwner(
                f"log.dirs {directory}: owned by another broker (node.id {properties.node_id} in {META_PROPERTIES}, "
                f"this one is {node_id})"
            )
        if cluster_id is not None and properties.cluster_id != cluster_id:
            raise WrongOwner(
                f"log.dirs {directory}: belongs to another cluster (cluster.id {properties.cluster_id} in "
                f"{META_PROPERTIES}, {cluster_id} is expected)"
            )
        cluster_id = properties.cluster_id
    return cluster_id


def _format_metadata(
    directory: str, node_id: int, directory_id: Uuid, controller: Endpoint, disk: Disk, now_ms: int
) -> None:
    """The bootstrap checkpoint, and the snapshot at offset 0 that names the only voter; meta.properties, written last,
    says that they are whole."""
    folder = os.path.join(directory, FOLDER)
    disk.mkdir(folder)
    write_snapshot(
        disk,
        snapshot_path(folder, SnapshotId(0, 0)),
        (),
        metadata_version=LATEST_METADATA_VERSION,
        last_timestamp=now_ms,
        now_ms=now_ms,
        quorum=(
            KRaftVersionRecord(version=0, k_raft_version=KRAFT_VERSION),
            sole_voter(node_id, directory_id, controller),
        ),
    )
    write_snapshot(
        disk,
        os.path.join(directory, BOOTSTRAP),
        bootstrap_records(),
        metadata_version=LATEST_METADATA_VERSION,
        last_timestamp=0,
        now_ms=now_ms,
    )
