"""The disk of a node of a simulated quorum: its log, snapshots and `quorum-state`, and what of it is flushed."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from coordinator.cluster.quorum_state import QuorumState
from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.following import control_records
from coordinator.quorum.ready import AppendBatches, RecoveredLog
from coordinator.quorum.voter_set import ControlRecord, VoterSet, from_record
from protocol.records.batch import CONTROL, LOG_OVERHEAD, iter_batches
from protocol.records.control import QuorumRecord, VotersRecord
from protocol.types import Uuid


class StoredBatch(NamedTuple):
    """A batch of the log, with a hash of it and of everything before it."""

    base_offset: int
    next_offset: int
    epoch: int
    data: bytes
    chain: int
    control: tuple[ControlRecord, ...]


class StoredSnapshot(NamedTuple):
    """A snapshot: the hash of everything that it replaces, and its control records."""

    snapshot_id: SnapshotId
    chain: int
    records: tuple[QuorumRecord, ...]

    @property
    def content(self) -> bytes:
        """The bytes that are sent; the world finds the snapshot by them again."""
        text = f"{self.snapshot_id.offset},{self.snapshot_id.epoch},{self.chain:010d};".encode() * 4
        return text + zlib.crc32(text).to_bytes(4)


def is_whole(content: bytes) -> bool:
    """True if the bytes are those of a snapshot."""
    return len(content) > 4 and zlib.crc32(content[:-4]).to_bytes(4) == content[-4:]


@dataclass(slots=True)
class QuorumDisk:
    """The disk of a node, which stays when its process ends."""

    directory_id: Uuid
    state: QuorumState = field(default_factory=QuorumState)
    start_offset: int = 0
    start_chain: int = 0
    batches: list[StoredBatch] = field(default_factory=list)
    snapshots: dict[SnapshotId, StoredSnapshot] = field(default_factory=dict)
    flushed: int = 0
    """The offset before which everything survives a power cut."""
    parts: dict[SnapshotId, bytearray] = field(default_factory=dict)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start_offset

    def chain_at(self, offset: int) -> int | None:
        """Returns the hash of everything before an offset; None if the log doesn't know it."""
        if offset == self.start_offset:
            return self.start_chain
        at = bisect_left(self.batches, offset, key=lambda batch: batch.next_offset)
        if at < len(self.batches) and self.batches[at].next_offset == offset:
            return self.batches[at].chain
        return None

    def between(self, start: int, end: int) -> Iterator[StoredBatch]:
        """Yields the batches from an offset to another."""
        at = bisect_left(self.batches, start, key=lambda batch: batch.base_offset)
        for batch in self.batches[at:]:
            if batch.next_offset > end:
                return
            yield batch

    def append(self, write: AppendBatches) -> list[StoredBatch]:
        """Appends batches, and returns them."""
        assert write.base_offset == self.end_offset, f"appended at {write.base_offset}, not at {self.end_offset}"
        chain = self.batches[-1].chain if self.batches else self.start_chain
        added = []
        data = bytes(write.data)
        for position, header in iter_batches(data):
            content = data[position : position + LOG_OVERHEAD + header.batch_length]
            chain = zlib.crc32(content, chain)
            control = tuple(control_records(content, 0)) if header.attributes & CONTROL else ()
            added.append(
                StoredBatch(
                    header.base_offset, header.next_offset, header.partition_leader_epoch, content, chain, control
                )
            )
        self.batches += added
        assert self.end_offset == write.next_offset
        return added

    def truncate(self, offset: int) -> None:
        while self.batches and self.batches[-1].next_offset > offset:
            self.batches.pop()
        assert self.end_offset == offset, f"truncated to {offset}, inside of a batch"
        self.flushed = min(self.flushed, offset)

    def read(self, offset: int, max_bytes: int) -> bytes:
        out = bytearray()
        for batch in self.between(offset, self.end_offset):
            if out and len(out) + len(batch.data) > max_bytes:
                break
            out += batch.data
        return bytes(out)

    def replace(self, snapshot: StoredSnapshot) -> None:
        """Replaces the log by a snapshot, which is flushed."""
        self.snapshots = {snapshot.snapshot_id: snapshot}
        self.batches = []
        self.start_offset = self.flushed = snapshot.snapshot_id.offset
        self.start_chain = snapshot.chain

    def cut(self, offset: int) -> None:
        """Removes everything before a snapshot's offset."""
        chain = self.chain_at(offset)
        assert chain is not None
        self.start_chain, self.start_offset = chain, offset
        self.batches = [batch for batch in self.batches if batch.base_offset >= offset]
        self.snapshots = {key: value for key, value in self.snapshots.items() if key.offset >= offset}

    def lose_power(self, dice: Random) -> None:
        """Loses a part of what is not flushed: each batch after the first lost batch is lost too."""
        unflushed = [batch for batch in self.batches if batch.base_offset >= self.flushed]
        kept = dice.randint(0, len(unflushed))
        if kept < len(unflushed):
            self.batches = self.batches[: len(self.batches) - len(unflushed) + kept]

    def recovered_voters(self) -> VoterSet | None:
        """Returns the last voter set of the log and its snapshots; None without one."""
        records = [record for batch in self.batches for _, record in batch.control]
        for snapshot in sorted(self.snapshots.values(), key=lambda snapshot: snapshot.snapshot_id.offset):
            records = [*snapshot.records, *records]
        voters = [record for record in records if isinstance(record, VotersRecord)]
        return from_record(voters[-1]) if voters else None

    def recovered(self) -> RecoveredLog:
        """Returns the log as a restart finds it, flushed."""
        self.parts = {}
        self.flushed = self.end_offset
        epochs: list[tuple[int, int]] = []
        for batch in self.batches:
            if not epochs or batch.epoch > epochs[-1][0]:
                epochs.append((batch.epoch, batch.base_offset))
        ids = sorted(self.snapshots, key=lambda key: (key.epoch, key.offset))
        control: list[ControlRecord] = []
        newest = 0
        if ids:
            newest = ids[-1].offset
            control += [ControlRecord(newest - 1, record) for record in self.snapshots[ids[-1]].records]
            if not epochs and newest:
                epochs.append((ids[-1].epoch, newest))
        control += [record for batch in self.batches for record in batch.control if batch.base_offset >= newest]
        return RecoveredLog(self.start_offset, self.end_offset, tuple(epochs), tuple(ids), tuple(control))
