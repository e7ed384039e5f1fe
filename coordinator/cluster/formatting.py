"""Whose log directories these are; those that are nobody's become this node's, as `kafka-storage format` makes them.

Source: Kafka's Formatter, MetaPropertiesEnsemble and DirectoryId.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from coordinator.cluster.brokers.features import LATEST_METADATA_VERSION, bootstrap_records
from coordinator.cluster.brokers.info import ASSUMED_ONLINE, Endpoint
from coordinator.cluster.image import Image
from coordinator.cluster.quorum import FOLDER, KRAFT_VERSION, sole_voter
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.snapshot import BOOTSTRAP, SnapshotId, snapshot_path, write_snapshot
from protocol.records.control import KRaftVersionRecord, VotersRecord
from protocol.types import Uuid, uuid_to_text
from storage.disk import Disk
from storage.folders import stored_logs
from storage.meta_properties import (
    META_PROPERTIES,
    VERSION,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)

FIRST_FREE_UUID = 100
"""Kafka keeps the smaller ones for itself: no directory, lost directory, the metadata topic …"""


class WrongOwner(Exception):
    """The log directories are not this node's, or not one cluster's: what the operator has to put right."""


class NewMetadata(NamedTuple):
    """The metadata that a cluster begins with."""

    records: Sequence[MetadataRecord]
    """Of the bootstrap checkpoint: features first, then credentials."""
    metadata_version: int


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


def check_formatted(directory: str, disk: Disk) -> None:
    """Raises WrongOwner for a directory that is not formatted: nothing there says to which cluster a node belongs that
    others have to do with. Raises CorruptCheckpoint, OSError."""
    if read_meta_properties(disk, directory) is None:
        raise WrongOwner(
            f"log.dirs {directory}: there is no {META_PROPERTIES}, which says whose broker this is: format it with "
            "`odradek format`, or kafka-storage format, and the cluster's id"
        )


def claim(
    log_dirs: Sequence[str],
    metadata_dir: str,
    node_id: int,
    controller: Sequence[Endpoint],
    cluster_id: str | None,
    new_uuid: Callable[[], Uuid],
    *,
    disk: Disk,
    now_ms: int,
) -> Identity:
    """The node's identity, from its directories' meta.properties; directories without one are formatted.

    `cluster_id` is what a new cluster is to be named; None draws a name. A directory that fails has no id then, and is
    for the logs to find out about. Raises WrongOwner, also for a directory with logs that is not formatted,
    CorruptCheckpoint, and OSError for the metadata's directory.
    """
    properties_by_directory = {metadata_dir: read_meta_properties(disk, metadata_dir)}
    for directory in dict.fromkeys(log_dirs):
        with suppress(OSError):
            disk.mkdir(directory, parents=True)
            properties_by_directory[directory] = read_meta_properties(disk, directory)
    for directory in [path for path, properties in properties_by_directory.items() if properties is None]:
        with suppress(OSError):
            _check_no_logs(directory, metadata_dir, disk)
    cluster_id = check_owner(properties_by_directory, node_id, cluster_id) or uuid_to_text(new_uuid())
    directory_ids = {}
    for directory, properties in properties_by_directory.items():
        directory_id = properties.directory_id if properties is not None else None
        if directory_id is None:
            directory_id = new_uuid()
            try:
                if directory == metadata_dir and properties is None:
                    voters = sole_voter(node_id, directory_id, controller)
                    new = NewMetadata(bootstrap_records(), LATEST_METADATA_VERSION)
                    format_directory(directory, new, voters, disk, now_ms)
                else:
                    make_directory(directory, disk)
                write_meta_properties(disk, directory, MetaProperties(cluster_id, node_id, directory_id))
            except OSError:
                if directory == metadata_dir:
                    raise
                continue
        directory_ids[directory] = directory_id
    return Identity(cluster_id, directory_ids)


def _check_no_logs(directory: str, metadata_dir: str, disk: Disk) -> None:
    """Raises WrongOwner for a directory without meta.properties that has logs: under a new id they would not be
    served."""
    for path, _ in stored_logs(directory, disk):
        raise WrongOwner(
            f"log.dirs {directory}: there is no {META_PROPERTIES}, but {path} has a log: put the file back, with the "
            f"lines cluster.id, node.id, directory.id and version={VERSION}; `odradek log metadata {metadata_dir}` "
            "shows the directory.id of each log directory"
        )


def check_directory_ids(image: Image, node_id: int, directory_ids: Mapping[str, Uuid], disk: Disk) -> None:
    """Raises WrongOwner for a log directory with partitions that the cluster has under an id that is no directory's of
    this node: they would have no leader. Raises OSError."""
    registration = image.brokers.get(node_id)
    registered = () if registration is None else registration.log_dirs
    changed = [path for path, own_id in directory_ids.items() if registered and own_id not in registered]
    for directory in changed:
        for path, (name, index) in stored_logs(directory, disk):
            topic = image.topic(name)
            partition = None if topic is None else topic.partitions.get(index)
            expected = None if partition is None else partition.directory_of(node_id)
            if expected in (None, *ASSUMED_ONLINE, *directory_ids.values()):
                continue
            assert expected is not None
            raise WrongOwner(
                f"log.dirs {directory}: directory.id {uuid_to_text(directory_ids[directory])} in {META_PROPERTIES} is "
                f"not what the cluster has for {path}: put directory.id={uuid_to_text(expected)} there"
            )


def make_directory(directory: str, disk: Disk) -> None:
    """Makes the directory if it is not there. Its name is durable before it is formatted, and those of the directories
    above it: a start that was cut short may have made them."""
    disk.mkdir(directory, parents=True)
    path = os.path.abspath(directory)
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        with suppress(PermissionError):  # then it is not ours, and was there before
            disk.fsync_dir(path)


def check_owner(
    properties_by_directory: Mapping[str, MetaProperties | None], node_id: int, cluster_id: str | None
) -> str | None:
    """Returns the cluster that the formatted directories belong to. Raises WrongOwner where one is another node's, or
    another cluster's."""
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


def format_directory(directory: str, new: NewMetadata, voters: VotersRecord | None, disk: Disk, now_ms: int) -> None:
    """Writes the bootstrap checkpoint, and where there are `voters` the snapshot at offset 0 that names them. The
    directory is formatted once its meta.properties is there too: write that last. Raises OSError."""
    make_directory(directory, disk)
    if voters is not None:
        folder = os.path.join(directory, FOLDER)
        disk.mkdir(folder)
        write_snapshot(
            disk,
            snapshot_path(folder, SnapshotId(0, 0)),
            (),
            metadata_version=new.metadata_version,
            last_timestamp=now_ms,
            now_ms=now_ms,
            quorum=(KRaftVersionRecord(version=0, k_raft_version=KRAFT_VERSION), voters),
        )
    write_snapshot(
        disk,
        os.path.join(directory, BOOTSTRAP),
        new.records,
        metadata_version=new.metadata_version,
        last_timestamp=0,
        now_ms=now_ms,
    )
