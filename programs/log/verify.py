"""`odradek log verify`: checks every checksum, index and checkpoint of a data directory, and that they agree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from coordinator.cluster.snapshot import find_snapshots, read_snapshot
from programs.log.dump import partitions
from programs.log.files import UNFINISHED
from programs.log.segments import SegmentToVerify, check_segment
from protocol.errors import KafkaError, ProtocolError
from protocol.types import TopicPartition
from storage import checkpoint
from storage.checkpoint import CorruptCheckpoint
from storage.config import MAX_LONG
from storage.disk import Disk
from storage.epochs import LeaderEpochCache
from storage.log_dir import OTHER_FOLDERS
from storage.meta_properties import META_PROPERTIES, read_meta_properties
from storage.names import INDEXES, LOG, SNAPSHOT, base_offset_of, parse_folder, segment_file
from storage.producers.snapshot import CorruptSnapshot, decode_snapshot
from storage.recovering.kept import kept_files

BOOTSTRAP = "bootstrap.checkpoint"

OFFSET_CHECKPOINTS = (
    checkpoint.RECOVERY_POINTS,
    checkpoint.LOG_START_OFFSETS,
    checkpoint.HIGH_WATERMARKS,
    checkpoint.CLEANED_OFFSETS,
)


class Finding(NamedTuple):
    """A finding about a file: a problem, or a note about a fault that the next start repairs."""

    path: str
    text: str
    is_problem: bool = True

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.is_problem else f"note: {self.path}: {self.text}"


class Counts:
    """The numbers of files, batches and records that were verified."""

    def __init__(self) -> None:
        self.partitions = 0
        self.segments = 0
        self.batches = 0
        self.bytes = 0
        self.problems = 0


Watch = Callable[[int], None]
"""Called with the number of further bytes that have been verified."""


class CheckpointedState(NamedTuple):
    """A log directory's checkpoints of its logs."""

    clean: bool
    recovery_points: dict[TopicPartition, int]


def size_of(disk: Disk, folders: Iterable[str]) -> int:
    """Returns the bytes of batches in the partitions, which are the total of the work."""
    total = 0
    for folder in folders:
        for name in disk.listdir(folder):
            info = disk.stat(os.path.join(folder, name)) if name.endswith(LOG) else None
            total += 0 if info is None else info.size_bytes
    return total


def folders_of(disk: Disk, path: str) -> list[str]:
    """Returns the partition folders in a log directory; or the path, if it is a partition folder."""
    return [path] if is_partition(disk, path) else partitions(disk, path)


def is_partition(disk: Disk, path: str) -> bool:
    """True if a path has the name of a partition's folder, and isn't a log directory with such a name: `broker-1`."""
    named = parse_folder(os.path.basename(os.path.abspath(path))) is not None
    return named and not disk.exists(os.path.join(path, META_PROPERTIES))


def verify(disk: Disk, path: str, counts: Counts, watch: Watch, *, deep: bool) -> Iterator[Finding]:
    """Yields the findings in a log directory, or in one partition's folder. Raises OSError."""
    folders = folders_of(disk, path)
    state = CheckpointedState(checkpoint.has_clean_shutdown(disk, os.path.dirname(os.path.abspath(path))), {})
    if folders != [path]:
        state = CheckpointedState(checkpoint.has_clean_shutdown(disk, path), {})
        yield from _directory(disk, path, state)
        yield from _others(disk, path)
        if not state.clean and folders:
            text = "was not shut down cleanly: the ends of its logs may be incomplete"
            yield Finding(path, text, is_problem=False)
    for folder in folders:
        counts.partitions += 1
        try:
            yield from _partition(disk, folder, state, counts, watch, deep)
        except OSError as error:
            yield Finding(error.filename or folder, f"cannot be read: {error.strerror or error}")


def _directory(disk: Disk, path: str, state: CheckpointedState) -> Iterator[Finding]:
    for name in OFFSET_CHECKPOINTS:
        try:
            offsets = checkpoint.read_offsets(disk, os.path.join(path, name))
        except CorruptCheckpoint as error:
            yield Finding(error.path, _without_path(error))
            continue
        if name == checkpoint.RECOVERY_POINTS:
            state.recovery_points.update(offsets)
        if (info := disk.stat(os.path.join(path, name))) is not None and not info.size_bytes:
            yield Finding(os.path.join(path, name), "is empty: it was not written yet", is_problem=False)
    try:
        if read_meta_properties(disk, path) is None:
            yield Finding(path, "meta.properties is missing: the directory was never formatted", is_problem=False)
    except CorruptCheckpoint as error:
        yield Finding(error.path, _without_path(error))


def _others(disk: Disk, path: str) -> Iterator[Finding]:
    """Yields findings about the other files and folders of a log directory."""
    bootstrap = os.path.join(path, BOOTSTRAP)
    if disk.exists(bootstrap):
        try:
            read_snapshot(disk, bootstrap)
        except (KafkaError, ProtocolError) as error:
            yield Finding(bootstrap, str(error))
    for name in disk.listdir(path):
        below = os.path.join(path, name)
        info = disk.stat(below)
        if info is not None and info.is_directory and name not in OTHER_FOLDERS and parse_folder(name) is None:
            yield Finding(below, "is not a partition folder: ignored", is_problem=False)


def _without_path(error: CorruptCheckpoint) -> str:
    return str(error).removeprefix(error.path).removeprefix(", ")


def _partition(
    disk: Disk, folder: str, state: CheckpointedState, counts: Counts, watch: Watch, deep: bool
) -> Iterator[Finding]:
    names = disk.listdir(folder)
    yield from _small_files(disk, folder, names)
    yield from _orphans(folder, names, state)
    folder_parts = parse_folder(os.path.basename(os.path.abspath(folder)))
    assert folder_parts is not None
    recovery_point = state.recovery_points.get(folder_parts.topic_partition, 0)
    snapshots = [offset for name in names if name.endswith(SNAPSHOT) and (offset := base_offset_of(name)) is not None]
    closed_at = max(snapshots) if snapshots and state.clean else MAX_LONG
    bases = sorted(offset for name in names if name.endswith(LOG) and (offset := base_offset_of(name)) is not None)
    for base, end in zip(bases, [*bases, None][1:], strict=True):
        counts.segments += 1
        is_recovered = not state.clean and (end is None or end > recovery_point)
        limit = closed_at if end is None else end
        segment = SegmentToVerify(folder, base, end, limit, is_recovered, frozenset(names))
        checked = check_segment(disk, segment, watch, deep=deep)
        counts.batches += checked.batches
        counts.bytes += checked.bytes
        yield from (Finding(path, text, not recoverable) for path, text, recoverable in checked.findings)
    if not bases:
        yield Finding(folder, "has no segment", is_problem=False)


def _orphans(folder: str, names: list[str], state: CheckpointedState) -> Iterator[Finding]:
    """Yields the indexes whose segment is missing; only a crash may leave some."""
    present = frozenset(names)
    for name in names:
        base = base_offset_of(name)
        if base is not None and name.endswith(INDEXES) and (log := segment_file(base, LOG)) not in present:
            yield Finding(os.path.join(folder, name), f"is the index of {log}, which is missing", state.clean)


def _small_files(disk: Disk, folder: str, names: list[str]) -> Iterator[Finding]:
    if unfinished := sum(name.endswith(UNFINISHED) for name in names):
        text = f"files that are about to be added or deleted: {unfinished}; the next start completes that"
        yield Finding(folder, text, is_problem=False)
    if aside := kept_files(folder, names):
        text = f"{len(aside)} files with records that recovery has set aside: odradek log repair {folder}"
        yield Finding(folder, text, is_problem=False)
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(SNAPSHOT):
            try:
                decode_snapshot(disk.read_file(path), name)
            except CorruptSnapshot as error:
                yield Finding(path, str(error).removeprefix(f"{name}: "))
    for snapshot in find_snapshots(names):
        path = os.path.join(folder, snapshot.file_name)
        try:
            read_snapshot(disk, path)
        except (KafkaError, ProtocolError) as error:
            yield Finding(path, str(error))
    try:
        checkpoint.read_partition_metadata(disk, folder)
        LeaderEpochCache.load(folder, disk=disk)
    except CorruptCheckpoint as error:
        yield Finding(error.path, _without_path(error))
