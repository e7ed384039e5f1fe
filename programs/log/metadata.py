"""`odradek log metadata`: the content of a controller's metadata log, and its lost records.

It reads past damage, unlike a start, and changes nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from broker.metadata.damage import find_evidence, missing
from cli.times import show_time
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.quorum import FOLDER
from coordinator.cluster.quorum_state import read_quorum_state
from coordinator.cluster.record import MetadataBatch, decode_batches
from coordinator.cluster.snapshot import SnapshotId, find_snapshots, read_snapshot, snapshot_path
from protocol.errors import KafkaError, ProtocolError
from protocol.types import uuid_to_text
from storage.checkpoint import CorruptCheckpoint
from storage.disk import Disk
from storage.names import LOG, base_offset_of
from storage.recovering.salvage import sound_batches


class Stored(NamedTuple):
    """The batches of a metadata log up to the first damaged batch, and the whole batches after it."""

    sound: list[MetadataBatch]
    damage: str | None
    """The position of the first damaged batch; None if there is none."""
    lost: list[MetadataBatch]


def examine(disk: Disk, log_dir: str) -> Iterator[tuple[str, bool]]:
    """Yields (line, is_problem) about the metadata log in a log directory. Raises OSError."""
    folder = os.path.join(log_dir, FOLDER)
    names = disk.listdir(folder) if disk.exists(folder) else []
    stored = read_batches(disk, folder, names)
    snapshots = find_snapshots(names)
    loader = MetadataLoader(Image(""))
    problem = _load_snapshot(loader, disk, folder, snapshots)
    if problem is not None:
        yield problem, True
    for batch in stored.sound:
        if batch.base_offset > loader.image.offset:
            loader.commit(batch)
    end = stored.sound[-1] if stored.sound else None
    end_offset, epoch = (0, 0) if end is None else (end.next_offset, end.epoch)
    start_offset = stored.sound[0].base_offset if stored.sound else 0
    yield f"{folder}: offsets {start_offset} to {end_offset}, epoch {epoch}, {len(snapshots)} snapshots", False
    if loader.last_timestamp_ms > 0:
        yield f"last record written at {show_time(loader.last_timestamp_ms)}", False
    if loader.voters is not None:
        yield f"voters: {', '.join(map(str, sorted(voter.voter_id for voter in loader.voters.voters)))}", False
    yield from ((line, False) for line in contents(loader.image))
    if stored.damage is not None:
        yield stored.damage, True
        kinds = Counter(type(record).__name__ for batch in stored.lost for record in batch.records)
        records = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none"
        yield f"whole batches after it: {len(stored.lost)}; their records: {records}", True
    try:
        evidence = find_evidence(folder, [log_dir], disk)
        quorum = read_quorum_state(disk, folder)
        voters = quorum.voters or (() if loader.voters is None else loader.voters.voters)
        is_only_copy = len(voters) < 2  # a voter of several may end before the others
        reason = missing(end_offset, epoch, snapshots, quorum, evidence) if is_only_copy else None
    except CorruptCheckpoint as error:
        reason = str(error)
    if reason is not None:
        yield f"the records end before offset {end_offset}, {reason}", True


def _load_snapshot(loader: MetadataLoader, disk: Disk, folder: str, snapshots: list[SnapshotId]) -> str | None:
    """Loads the newest snapshot. Returns its fault; None if it is sound."""
    for snapshot_id in snapshots[-1:]:
        path = snapshot_path(folder, snapshot_id)
        try:
            loader.load_snapshot(snapshot_id, read_snapshot(disk, path))
        except (KafkaError, ProtocolError) as error:
            return f"{path}: {error}"
    return None


def read_batches(disk: Disk, folder: str, names: list[str]) -> Stored:
    """Returns the batches in a metadata log's segments. Raises OSError."""
    stored = Stored([], None, [])
    expected, epoch = -1, 0
    for name in sorted(name for name in names if name.endswith(LOG) and base_offset_of(name) is not None):
        path = os.path.join(folder, name)
        data = memoryview(disk.read_file(path))
        end = 0
        for position, header in sound_batches(memoryview(data)):
            is_next = position == end and expected in (-1, header.base_offset)
            if stored.damage is None and not (is_next and header.partition_leader_epoch >= epoch):
                stored = stored._replace(damage=f"{path}: damaged at byte {end}, offset {max(expected, 0)}")
            end, expected = position + header.size_bytes, header.next_offset
            epoch = header.partition_leader_epoch
            into = stored.sound if stored.damage is None else stored.lost
            into.extend(decode_batches(data[position:end]))
        if end < len(data) and stored.damage is None:
            stored = stored._replace(damage=f"{path}: damaged at byte {end}, offset {max(expected, 0)}")
    return stored


def contents(image: Image) -> Iterator[str]:
    """Yields lines about the cluster. The meta.properties of a directory must have the shown id."""
    topics = list(image.topics())
    yield f"topics: {len(topics)}, with {sum(len(topic.partitions) for topic in topics)} partitions"
    for broker in image.brokers.values():
        directories = ", ".join(map(uuid_to_text, broker.log_dirs)) or "none"
        yield f"broker {broker.broker_id}: directory.id of its log directories: {directories}"
