"""`odradek log dump`: the content of files, folders of partitions and log directories, line by line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from programs.log.files import batches, kind_of, topic_of, window
from programs.log.text import batch_line, moment, record_lines
from protocol.errors import KafkaError, ProtocolError
from protocol.record_text import decoder
from storage.disk import Disk
from storage.names import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, base_offset_of, parse_folder
from storage.producers.snapshot import CorruptSnapshot, decode_snapshot
from storage.segment.index import OffsetIndex
from storage.segment.time_index import TimeIndex
from storage.segment.txn_index import TransactionIndex

ANY_SIZE = 1 << 40
"""No limit on the size of indexes."""


class Options(NamedTuple):
    """The records to show, and the topic whose format decodes them."""

    with_records: bool = True
    from_offset: int = 0
    topic: str | None = None


class Unreadable(Exception):
    """A file whose content doesn't match its name; the text has the path and the fault."""


def dump(disk: Disk, path: str, options: Options) -> Iterator[str]:
    """Yields the lines about a path. Raises OSError and Unreadable; for a folder only after all readable files."""
    info = disk.stat(path)
    if info is None:
        raise Unreadable(f"{path}: there is no such file")
    if not info.is_directory:
        yield from dump_file(disk, path, options)
        return
    problems: list[Exception] = []
    for below in files_in(disk, path):
        try:
            yield f"{below}:"
            yield from dump_file(disk, below, options)
        except (Unreadable, OSError) as error:
            problems.append(error)
            yield f"  {error}"
    for problem in problems:
        raise problem


def files_in(disk: Disk, path: str) -> Iterator[str]:
    """Yields the files of a folder that can be dumped, then the files of the partitions in it. Raises OSError."""
    names = [os.path.join(path, name) for name in disk.listdir(path)]
    dumped = [name for name in names if is_dumped(disk, name)]
    folders = partitions(disk, path)
    if not dumped and not folders:
        raise Unreadable(f"{path}: it has no file that can be dumped")
    yield from dumped
    for folder in folders:
        yield from (name for below in disk.listdir(folder) if is_dumped(disk, name := os.path.join(folder, below)))


def is_dumped(disk: Disk, path: str) -> bool:
    """True if it is a file of a known kind; other files in a folder are skipped."""
    info = disk.stat(path)
    return info is not None and not info.is_directory and kind_of(path) in (*KINDS, *TEXTS)


def dump_file(disk: Disk, path: str, options: Options) -> Iterator[str]:
    kind = kind_of(path)
    show = KINDS.get(kind, _text if kind in TEXTS else None)
    if show is None:
        raise Unreadable(f"{path}: {kind} is not a known kind of file; expected one of {', '.join((*KINDS, *TEXTS))}")
    nothing = True
    try:
        for line in show(disk, path, options):
            nothing = False
            yield line
    except (KafkaError, ProtocolError, CorruptSnapshot) as error:
        raise Unreadable(f"{path}: {error}") from None
    if nothing:
        yield "(nothing)"


def _batches(disk: Disk, path: str, options: Options) -> Iterator[str]:
    topic = topic_of(path) if options.topic is None else options.topic
    show, end = decoder(topic), 0
    for position, header, view in batches(disk, path):
        end = position + header.size_bytes
        if header.last_offset < options.from_offset:
            continue
        yield batch_line(position, header)
        if options.with_records and header.records_count:
            yield from record_lines(view, header, show)
    with window(disk, path) as (_, size):
        if end != size:
            raise Unreadable(f"{path}: {size - end} bytes from {end} on are not a whole batch")


def _metadata_snapshot(disk: Disk, path: str, options: Options) -> Iterator[str]:
    yield from _batches(disk, path, options._replace(topic="__cluster_metadata"))


def _offset_index(disk: Disk, path: str, options: Options) -> Iterator[str]:
    index = OffsetIndex(path, _base_offset(path), disk=disk, max_size_bytes=ANY_SIZE)
    yield from (f"offset {offset} at {position}" for offset, position in index)


def _time_index(disk: Disk, path: str, options: Options) -> Iterator[str]:
    index = TimeIndex(path, _base_offset(path), disk=disk, max_size_bytes=ANY_SIZE)
    yield from (f"up to {moment(timestamp)} until offset {offset}" for timestamp, offset in index)


def _transaction_index(disk: Disk, path: str, options: Options) -> Iterator[str]:
    for producer_id, first, last, stable in TransactionIndex(path, _base_offset(path), disk=disk):
        yield f"aborted: producer {producer_id}, offsets {first} to {last}, last stable offset {stable}"


def _producers(disk: Disk, path: str, options: Options) -> Iterator[str]:
    for entry in decode_snapshot(disk.read_file(path), path):
        last, open_since = entry.last_batch, entry.txn_first_offset
        yield (
            f"producer {entry.producer_id} epoch {entry.epoch}, last sequence {last.last_sequence} at offset "
            f"{last.last_offset}, coordinator epoch {entry.coordinator_epoch}, {moment(entry.last_timestamp)}"
            + (f", transaction open since {open_since}" if open_since >= 0 else "")
        )


def _text(disk: Disk, path: str, options: Options) -> Iterator[str]:
    yield from disk.read_file(path).decode("utf-8", "backslashreplace").splitlines()


def _base_offset(path: str) -> int:
    offset = base_offset_of(os.path.basename(path))
    if offset is None:
        raise Unreadable(f"{path}: its name has no base offset, which its entries need")
    return offset


def partitions(disk: Disk, log_dir: str) -> list[str]:
    """Returns the folders of partitions in a log directory."""
    return [os.path.join(log_dir, name) for name in disk.listdir(log_dir) if parse_folder(name) is not None]


Show = Callable[[Disk, str, Options], Iterator[str]]

KINDS: dict[str, Show] = {
    LOG: _batches,
    INDEX: _offset_index,
    TIME_INDEX: _time_index,
    TXN_INDEX: _transaction_index,
    SNAPSHOT: _producers,
    ".checkpoint": _metadata_snapshot,
}

TEXTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "leader-epoch-checkpoint",
    ".metadata",
    ".properties",
    ".kafka_cleanshutdown",
    "quorum-state",
)
