"""`<offset>.snapshot`: the producers of a partition at a log end offset, so that opening a log need not read all of it.

    version i16 = 1 · CRC-32C u32 of what follows · count i32 · entries of
    producer id i64 · epoch i16 · last sequence i32 · last offset i64 · offset delta i32 · timestamp i64 ·
    coordinator epoch i32 · first offset of the ongoing transaction i64

Kafka's ProducerSnapshot, version 1, of class ProducerStateManager.
"""

from __future__ import annotations

import contextlib
import logging
import os
import struct
from collections.abc import Collection, Iterable

from protocol.records.checksum import crc32c
from storage.disk import Disk
from storage.names import DELETED, SNAPSHOT, base_offset_of, segment_file
from storage.producers.entry import NO_OFFSET, CachedBatch, ProducerEntry

logger = logging.getLogger(__name__)

VERSION = 1

_FRONT = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_START = 6


class CorruptSnapshot(Exception):
    """A torn or damaged snapshot. An older snapshot, or the log itself, replaces it."""


class SnapshotFiles:
    """The producer snapshot files of one partition, and their offsets, oldest first."""

    __slots__ = ("_disk", "_unsynced", "deleted_of_the_future", "directory", "offsets")

    def __init__(self, directory: str, disk: Disk) -> None:
        self.directory = directory
        self.offsets: list[int] = []
        self.deleted_of_the_future = False
        """True if a snapshot beyond the log's end was deleted. Until the folder is synced, a power loss may bring it
        back, and it would count as a snapshot of later records at the same offsets."""
        self._disk = disk
        self._unsynced: list[int] = []

    @property
    def latest(self) -> int | None:
        """The offset of the newest snapshot."""
        return self.offsets[-1] if self.offsets else None

    def path(self, offset: int) -> str:
        """Returns the path of the snapshot at this offset."""
        return os.path.join(self.directory, segment_file(offset, SNAPSHOT))

    def find(self, names: Iterable[str] | None = None) -> None:
        """Finds the snapshot files. `names` are the files of the log's folder, if they are already listed."""
        present = self._disk.listdir(self.directory) if names is None else names
        offsets = [base_offset_of(name) for name in present if name.endswith(SNAPSHOT)]
        self.offsets = sorted(offset for offset in offsets if offset is not None)

    def write(self, offset: int, producers: Collection[ProducerEntry], *, sync: bool) -> str:
        """Writes the snapshot at this offset, and returns its path. A CRC detects a torn file."""
        path = self.path(offset)
        self._disk.write_file(path, encode_snapshot(producers), sync=sync)
        if offset not in self.offsets:
            self.offsets = sorted([*self.offsets, offset])
        if not sync:
            self._unsynced.append(offset)
        return path

    def sync(self, end_offset: int) -> None:
        """Flushes the snapshots up to `end_offset` to the device. For any thread, at any time. Raises OSError.

        A compacted log can't be replayed from an older snapshot, which may have an open transaction whose marker
        compaction has removed.
        """
        for offset in [offset for offset in self._unsynced if offset <= end_offset]:
            self._unsynced.remove(offset)
            with contextlib.suppress(FileNotFoundError):  # deleted with its segment
                self._disk.sync_file(self.path(offset))

    def read_latest(self) -> tuple[int, list[ProducerEntry]] | None:
        """Returns the newest valid snapshot and its offset, or None. Deletes invalid snapshots."""
        while self.offsets:
            offset = self.offsets[-1]
            path = self.path(offset)
            try:
                return offset, decode_snapshot(self._disk.read_file(path), path)
            except (CorruptSnapshot, FileNotFoundError) as error:
                logger.warning("producer snapshot discarded: %s", error)
                self.delete(offset)
        return None

    def delete(self, offset: int) -> None:
        """Deletes the snapshot at this offset."""
        self.offsets.remove(offset)
        self._disk.unlink(self.path(offset), missing_ok=True)

    def delete_outside(self, low: int, high: int) -> None:
        """Deletes the snapshots that are not in (low, high]."""
        for offset in self.offsets.copy():
            if not low < offset <= high:
                self.deleted_of_the_future |= offset > high
                self.delete(offset)

    def delete_strays(self, segment_base_offsets: Collection[int]) -> None:
        """Deletes the snapshots without a segment, except the newest if it is beyond all segments (a clean stop)."""
        strays = [offset for offset in self.offsets if offset not in segment_base_offsets]
        if strays and strays[-1] >= max(segment_base_offsets, default=0):
            strays.pop()
        for offset in strays:
            self.delete(offset)

    def set_aside(self, offset: int) -> str | None:
        """Renames a deleted segment's snapshot to `.deleted`, and returns its path; None without a snapshot."""
        if offset not in self.offsets:
            return None
        self.offsets.remove(offset)
        path = self.path(offset)
        try:
            self._disk.rename(path, path + DELETED)
        except FileNotFoundError:
            return None
        return path + DELETED


def encode_snapshot(producers: Collection[ProducerEntry]) -> bytearray:
    """Returns the bytes of a snapshot file."""
    content = bytearray(_FRONT.pack(VERSION, 0, len(producers)))
    for entry in producers:
        last = entry.last_batch
        content += _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
    struct.pack_into(">I", content, 2, crc32c(memoryview(content)[_CRC_START:]))
    return content


def decode_snapshot(content: bytes, name: str) -> list[ProducerEntry]:
    """Returns the producers in a snapshot file. Raises CorruptSnapshot, which names the file."""
    if len(content) < _FRONT.size:
        raise CorruptSnapshot(f"{name}: {len(content)} bytes are too few for a producer snapshot")
    version, crc, count = _FRONT.unpack_from(content)
    if version != VERSION:
        raise CorruptSnapshot(f"{name}: producer snapshot of version {version}, not {VERSION}")
    computed = crc32c(memoryview(content)[_CRC_START:])
    if crc != computed:
        raise CorruptSnapshot(f"{name}: CRC-32C is {computed:#010x}, the file says {crc:#010x}")
    if len(content) != _FRONT.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{name}: {len(content)} bytes do not hold {count} producers")
    return [_decode_entry(*fields) for fields in _ENTRY.iter_unpack(memoryview(content)[_FRONT.size :])]


def _decode_entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    txn_first_offset: int,
) -> ProducerEntry:
    ongoing = txn_first_offset if txn_first_offset >= 0 else NO_OFFSET
    entry = ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, ongoing)
    if last_offset >= 0:
        entry.restore(CachedBatch(last_sequence, last_offset, offset_delta, timestamp))
    return entry
