"""Checks that log directories belong to this node, and formats new ones as `kafka-storage format` does.

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
"""Kafka reserves the smaller ids: no directory, lost directory, the metadata topic …"""


class WrongOwner(Exception):
    """The log directories belong to another node or to several clusters; the operator must correct this."""


class NewMetadata(NamedTuple):
    """The first metadata of a new cluster."""

    records: Sequence[MetadataRecord]
    """The records of the bootstrap checkpoint: features first, then credentials."""
    metadata_version: int


class Identity(NamedTuple):
    """The node's cluster, and the id of each of its log directories, in order."""

    cluster_id: str
    directory_ids: dict[str, Uuid]


def random_uuid(random_bytes: Callable[[int], bytes]) -> Uuid:
    """Returns a random UUID (version 4) as Kafka draws it: not a reserved id, and without a `-` in front, which
    command-line tools would parse as an option.
    """
    while True:
        drawn = bytearray(random_bytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        value = bytes(drawn)
        if int.from_bytes(value) >= FIRST_FREE_UUID and not uuid_to_text(value).startswith("-"):
            return value


def check_formatted(directory: str, disk: Disk) -> None:
    """Raises WrongOwner for a directory without meta.properties: the operator must format it with the cluster id that
    the other nodes have. Raises CorruptCheckpoint, OSError.
    """
    if read_meta_properties(disk, directory) is None:
        raise WrongOwner(
            f"log.dirs {directory}: {META_PROPERTIES} is missing, so the directory's owner is unknown: format it with "
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
    """Returns the node's identity from its directories' meta.properties; formats directories without one.

    `cluster_id` is the id of a new cluster; None draws a random id. A directory that fails gets no id, and is reported
    when the logs are opened. Raises WrongOwner, also for an unformatted directory with logs; CorruptCheckpoint; and
    OSError for the metadata's directory.
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
    """Raises WrongOwner for a directory without meta.properties that has logs, because they would not be served under a
    new directory id.
    """
    for path, _ in stored_logs(directory, disk):
        raise WrongOwner(
            f"log.dirs {directory}: {META_PROPERTIES} is missing, but {path} has a log: restore the file, with the "
            f"lines cluster.id, node.id, directory.id and version={VERSION}; `odradek log metadata {metadata_dir}` "
            "shows the directory.id of each log directory"
        )


def check_directory_ids(image: Image, node_id: int, directory_ids: Mapping[str, Uuid], disk: Disk) -> None:
    """Raises WrongOwner if a log directory has partitions that the metadata assigns to a directory id that no directory
    of this node has: they would have no leader. Raises OSError.
    """
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
                f"log.dirs {directory}: {META_PROPERTIES} has directory.id {uuid_to_text(directory_ids[directory])}, "
                f"but the metadata has {path} under another: set directory.id={uuid_to_text(expected)} there"
            )


def make_directory(directory: str, disk: Disk) -> None:
    """Creates the directory if it doesn't exist. Flushes its name before it is formatted, and the names of its parents,
    which an interrupted start may have created.
    """
    disk.mkdir(directory, parents=True)
    path = os.path.abspath(directory)
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        with suppress(PermissionError):  # a parent that belongs to another user existed before
            disk.fsync_dir(path)


def check_owner(
    properties_by_directory: Mapping[str, MetaProperties | None], node_id: int, cluster_id: str | None
) -> str | None:
    """Returns the cluster that the formatted directories belong to. Raises WrongOwner if a directory belongs to another
    node or cluster.
    """
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
    """Writes the bootstrap checkpoint and, with `voters`, the snapshot at offset 0 that names them, as kafka-storage
    of Kafka 4.0 to 4.3 does; later versions read it, too. The caller writes meta.properties last, because the directory
    counts as formatted once it has that file. Raises OSError.
    """
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
