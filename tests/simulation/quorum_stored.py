"""A quorum whose nodes have real logs on disks that tear writes, lose power, fill up, and flip bits.

The model of a disk is what the real log must be: each start reads the real files, and compares. What the model has as
flushed must be there; nothing may be there that was never appended. A node with a flipped bit does not start, or the
bit was of no consequence; then it starts on an empty disk, with another directory id.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Final

from broker.metadata.damage import FLUSHED, Guard, find_evidence
from broker.metadata.loading import load
from broker.metadata.log import log_config, open_metadata_log
from broker.metadata.replicated_log import ReplicatedLog
from broker.metadata.snapshots import SnapshotRules, Snapshots
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.quorum import FOLDER
from coordinator.cluster.quorum_state import QuorumState
from coordinator.cluster.record import decode_batches, encode_batch
from coordinator.cluster.snapshot import SnapshotId, find_snapshots, read_snapshot, snapshot_path, write_snapshot
from coordinator.quorum.observer import BeginSnapshot, DropSnapshot, WritePiece
from coordinator.quorum.pieces import PieceWish, SnapshotPiece
from coordinator.quorum.raft import Raft
from coordinator.quorum.ready import (
    AdoptSnapshot,
    AppendBatches,
    Flush,
    ReadRecords,
    Ready,
    RecoveredLog,
    TruncateTo,
    Write,
)
from coordinator.quorum.roles import Role
from protocol.errors import KafkaError, ProtocolError
from protocol.metadata_records.settings import ConfigRecord
from protocol.records.control import KRaftVersionRecord, VotersRecord
from storage.checkpoint import CorruptCheckpoint
from storage.failure import LogDirFull, StorageError
from tests.broker.metadata.harness import HandWorker
from tests.clock import ManualClock
from tests.simulation.faulty_disk import Crash, FaultyDisk
from tests.simulation.quorum_disk import QuorumDisk, StoredBatch, StoredSnapshot
from tests.simulation.quorum_faults import FAULTS, run, snapshot
from tests.simulation.quorum_node import Crashed, NodeSurroundings, QuorumNode
from tests.simulation.quorum_world import QuorumWorld

DIRECTORY: Final = "/data"
LEVEL: Final = 30
"""The metadata.version of the records."""

LOG_CONFIG: Final = log_config(segment_bytes=900)
RULES: Final = SnapshotRules(max_record_bytes=1_200, max_interval_ms=1, retention_bytes=3_000, retention_ms=-1)

VOTERS: Final = (KRaftVersionRecord, VotersRecord)

NEVER_DETECTED: Final = (".index", ".timeindex", ".txnindex", ".snapshot", ".torn", ".kept", "partition.metadata")
"""Files that a start rebuilds, or doesn't need."""


class StoredNode(QuorumNode):
    """A node with a real log, image and snapshots. Its model has what must be on its disk."""

    def __init__(self, world: NodeSurroundings, node_id: int, *, can_vote: bool) -> None:
        super().__init__(world, node_id, can_vote=can_vote)
        assert isinstance(world, StoredWorld)
        self.stored_world = world
        self.clock = ManualClock()
        self.log: ReplicatedLog | None = None
        self.empty()

    def empty(self) -> None:
        """Begins with an empty disk."""
        self.files = FaultyDisk(Random(self.world.dice.randrange(1 << 30)))
        self.flipped = False
        """True after a bit was flipped that no start has judged yet."""
        self.files.mkdir(self.folder, parents=True)
        for path in (self.folder, DIRECTORY, "/"):
            self.files.fsync_dir(path)
        self._storing = QuorumState()
        """The state that is being stored, or was stored last."""
        self.has_lost_power = False
        """True from a power cut to the next start."""
        self._ends: dict[tuple[int, int], int] = {(0, 0): 0}
        """The hash of the log before an offset and epoch, for all that was ever in this log."""

    folder = os.path.join(DIRECTORY, FOLDER)

    # The process

    def start(self) -> None:
        try:
            self._open()
        except Crash:
            self.files.crash(power=self.world.dice.random() < 0.5)
            self.world.counts["crashed while it started"] += 1
            return
        except LogDirFull:
            self.files.crash(power=False)  # it has room at the next start
            self.world.counts["no room to start"] += 1
            return
        except (KafkaError, ProtocolError, CorruptCheckpoint) as error:
            self._found(f"it does not start: {error}")
            self.world.counts["flipped bit found at a start"] += 1
            self.stored_world.replace(self)
            self._open()
        self.has_lost_power = False
        if self.flipped:
            self.world.counts["flipped bit without consequence"] += 1
            self.stored_world.is_sound(self)
        super().start()

    def _found(self, error: str) -> None:
        """Checks that there is a reason for an error."""
        assert self.flipped, f"node {self.node_id} has no damage, but {error}"

    def _open(self) -> None:
        """Opens the real log, and compares it with the model."""
        files = self.files
        guard = Guard(self.folder, find_evidence(self.folder, [DIRECTORY], files), files)
        self.log = log = open_metadata_log(
            ReplicatedLog,
            DIRECTORY,
            disk=files,
            clock=self.clock,
            worker=HandWorker(),
            config=LOG_CONFIG,
            guard=guard,
            is_only_copy=lambda log: log.voters(self.world.static_voters.ids) in ([], [self.node_id]),
        )
        self.loader = MetadataLoader(Image("the-cluster"))
        for snapshot_id in log.snapshots()[-1:]:
            log.begin_at(snapshot_id)
        load(self.loader, log, files)
        self._compare(log)
        log.listen(self.loader.committing)
        self.snapshots = Snapshots(self.loader, log, RULES, 0, disk=files, clock=self.clock, worker=HandWorker())
        log.listen(self.snapshots.committed)
        self._changed, self._is_full = False, False
        self.snapshots.on_change = self._on_change
        self._recovered = log.recover()

    def recovered(self) -> RecoveredLog:
        model, real = self.disk.recovered(), self._recovered
        assert model.end_offset == real.end_offset
        assert model.snapshots == real.snapshots, f"{real.snapshots}, not {model.snapshots}"
        control = [record for record in real.control if isinstance(record.record, VOTERS)]
        assert [record for record in model.control if isinstance(record.record, VOTERS)] == control
        return real

    def _compare(self, log: ReplicatedLog) -> None:
        """Compares the real log with the model, and makes the model what is on the disk."""
        before, state = self.disk, log.stored._replace(voters=None)
        if self.world.static_voters:
            before.state, self._storing = (
                known._replace(voted_directory_id=state.voted_directory_id) for known in (before.state, self._storing)
            )  # version 0 has no directory
        assert state in (before.state, self._storing), f"quorum-state has {state}, not {before.state}"
        model = QuorumDisk(before.directory_id, state, flushed=before.flushed)
        ids = find_snapshots(self.files.listdir(self.folder))
        for snapshot_id in ids:
            model.snapshots[snapshot_id] = self._stored(snapshot_id)
        model.start_offset = log.start_offset
        if log.start_offset:
            assert any(key.offset >= log.start_offset for key in ids), "the log begins later than the snapshots end"
            model.start_chain = self._start_chain(log)
        offset = log.start_offset
        while offset < log.end_offset:
            data = log.records(ReadRecords(offset, 1 << 20))
            (*_, last) = decode_batches(data)
            for batch in model.append(AppendBatches(data, offset, last.next_offset, 0)):
                known = self._ends.get((batch.next_offset, batch.epoch))
                assert known == batch.chain, f"node {self.node_id} has a batch that was never appended: {batch}"
            offset = last.next_offset
        newest = ids[-1].offset if ids else 0
        assert max(log.end_offset, newest) >= before.flushed, f"flushed to {before.flushed}, ends at {log.end_offset}"
        for batch in before.batches:
            if batch.next_offset <= before.flushed and batch.base_offset >= log.start_offset:
                assert model.chain_at(batch.next_offset) == batch.chain, f"{batch} was flushed, and is another now"
        self.disk = model

    def _start_chain(self, log: ReplicatedLog) -> int:
        """Returns the hash of all that was before the log's start, which its first batch continues."""
        start = log.start_offset
        chains = [chain for (offset, _), chain in self._ends.items() if offset == start]
        if log.end_offset > start:
            data = log.records(ReadRecords(start, 1))
            (batch,) = decode_batches(data)
            known = self._ends.get((batch.next_offset, batch.epoch))
            chains = [chain for chain in chains if zlib.crc32(data, chain) == known]
        assert chains, f"the log begins at {start} with what was never there"
        return chains[-1]

    def _stored(self, snapshot_id: SnapshotId) -> StoredSnapshot:
        content = read_snapshot(self.files, snapshot_path(self.folder, snapshot_id))
        quorum = tuple(record for record in content.quorum if isinstance(record, VOTERS))
        assert snapshot_id in self._ends, f"node {self.node_id} has a snapshot {snapshot_id} that nobody made"
        return StoredSnapshot(snapshot_id, self._ends[snapshot_id], quorum)

    def stop(self, *, power: bool) -> None:
        power = power and not self.flipped  # which part was flushed is only known without both
        self.has_lost_power = power
        super().stop(power=False)
        self.files.crash(power=power)
        if power:
            self._foresee()
        self.log = None

    @property
    def has_noted_flush(self) -> bool:
        """True if `flushed-offset` has the last flush, which the power, or a full disk, may have kept from it."""
        noted = [bytes(file.data[:20]) for path, file in self.files.files() if path.endswith(FLUSHED)]
        return not self.has_lost_power and all(at.isdigit() and int(at) >= self.disk.flushed for at in noted)

    def _foresee(self) -> None:
        """Makes the model what the next start will find, which the world takes into account meanwhile."""
        files = self.files
        self.files = deepcopy(files)
        try:
            self._open()
        except (KafkaError, ProtocolError, CorruptCheckpoint) as error:
            self._found(f"it will not start: {error}")
        finally:
            self.files = files

    # What leaves

    def _carry_out(self) -> None:
        super()._carry_out()
        raft = self.raft
        if raft is not None and self._is_full:
            assert self.log is not None
            self._is_full = False
            self.world.counts["disk full"] += 1
            raft.not_written(self.log.end_offset, self.now_ms)
            self._carry_out()
        elif raft is not None and self._changed:
            self._changed = False
            raft.snapshots_changed(self.disk.start_offset, self.snapshots.ids)

    def _write(self, write: Write) -> SnapshotId | None:
        log = self.log
        assert log is not None
        if self._is_full:
            return None
        try:
            if isinstance(write, AppendBatches):
                data = bytes(write.data)
                for batch in deepcopy(self.disk).append(write):
                    self._ends[batch.next_offset, batch.epoch] = batch.chain
                log.write(write._replace(data=bytearray(data)))
                self._appended += self.disk.append(write._replace(data=data))
                return None
            if isinstance(write, TruncateTo):
                self._truncate(log, write)
            elif isinstance(write, WritePiece):
                log.write_part(write.snapshot_id, write.position, memoryview(write.content))
            elif isinstance(write, DropSnapshot):
                log.drop(write.snapshot_id)
            elif isinstance(write, AdoptSnapshot):
                return write.snapshot_id
            else:
                assert isinstance(write, BeginSnapshot)
        except LogDirFull:
            self._is_full = True
        return None

    def _truncate(self, log: ReplicatedLog, write: TruncateTo) -> None:
        super()._write(write)
        try:
            log.cut_back(write.offset)
        except LogDirFull:
            self.world.counts["no room to truncate"] += 1
            raise Crash("no room to truncate") from None

    def store(self, state: QuorumState) -> None:
        assert self.log is not None
        static = self.raft is not None and not self.raft.kraft_version
        self._storing = state
        try:
            self.log.store(state._replace(voters=()) if static else state)
        except LogDirFull:
            raise Crash("no room for quorum-state") from None
        super().store(state)

    def make_durable(self, offset: int) -> None:
        assert self.log is not None
        self.log.flush()
        super().make_durable(self.log.end_offset)

    def _flushed(self, token: Flush, incarnation: int) -> None:
        try:
            super()._flushed(token, incarnation)
        except LogDirFull:
            assert self.raft is not None
            self.world.counts["no room for epochs"] += 1
            self.raft.not_written(self.disk.end_offset, self.now_ms)
            self._next_flush = self._next_flush or token
            self.world.after(1_000, lambda: self._flush_again(incarnation))
            self.carry_out()
        except Crash:
            self.world.crash(self, power=self.world.dice.random() < 0.5)

    def _flush_again(self, incarnation: int) -> None:
        if self.raft is not None and incarnation == self.incarnation and not self._is_flushing and self._next_flush:
            self._flush(self._next_flush)

    def read(self, wish: ReadRecords) -> bytes:
        assert self.log is not None
        try:
            return self.log.records(wish)
        except KafkaError as error:
            self._found(f"it can't read its log: {error}")
            self.world.counts["flipped bit found by a read"] += 1
            raise Crash(str(error)) from None

    def read_piece(self, wish: PieceWish) -> SnapshotPiece | None:
        assert self.log is not None
        return self.log.read_snapshot_piece(*wish)

    def _adopt(self, raft: Raft, snapshot_id: SnapshotId) -> None:
        log, world = self.log, self.stored_world
        assert log is not None
        assert raft.role is not Role.LEADER, "a leader loads a snapshot"
        try:
            snapshot, file = log.finish_part(snapshot_id)
            self.loader.replace(snapshot_id, snapshot)
        except LogDirFull:
            self._is_full = True
            return
        except StorageError:
            raise
        except (KafkaError, ProtocolError):
            world.counts["damaged snapshot"] += 1
            log.drop(snapshot_id)
            raft.rejected(snapshot_id, self.now_ms)
        else:
            world.counts["adopted"] += 1
            self._ends[snapshot_id] = world.snapshot_chains[snapshot_id]
            world.check_image(self.loader.image)
            self.disk.replace(self._stored(snapshot_id))
            self._flush_target = 0
            log.restart_at(snapshot_id)
            raft.adopted(snapshot_id, snapshot.quorum, self.now_ms)
            self.snapshots.adopted(file)
        self._carry_out()

    def _notice(self, ready: Ready) -> None:
        assert self.log is not None
        if ready.leader is not None:
            self.log.led(ready.leader, is_voter=True)
        if ready.high_watermark is not None and ready.high_watermark > self.log.end_offset:
            assert self._is_full
            ready.high_watermark = None
        super()._notice(ready)
        if ready.high_watermark is not None:
            self.log.commit(ready.high_watermark)
            if self.log.failed is not None:
                self._found(f"it fails: {self.log.failed}")
                self.world.counts["flipped bit found by a read"] += 1
                raise Crash(str(self.log.failed))

    # Snapshots

    def make_snapshot(self, *, cut: bool) -> None:
        self.clock.time_ms += 10_000
        try:
            self.snapshots.maintain()
            self._carry_out()
        except (Crashed, Crash):
            self.world.crash(self, power=self.world.dice.random() < 0.5)

    def _on_change(self) -> None:
        """Takes new and removed snapshots, and a moved log start, into the model."""
        assert self.log is not None
        model, chains = self.disk, self.stored_world.snapshot_chains
        for snapshot_id in self.snapshots.ids:
            if snapshot_id not in model.snapshots:
                chain = model.chain_at(snapshot_id.offset)
                assert chain is not None
                assert chains.setdefault(snapshot_id, chain) == chain, f"there are two snapshots {snapshot_id}"
                self._ends[snapshot_id] = chain
                model.snapshots[snapshot_id] = self._stored(snapshot_id)
                self.world.counts["snapshot"] += 1
        if self.log.start_offset > model.start_offset:
            model.cut(self.log.start_offset)
            self.world.counts["cut"] += 1
        model.snapshots = {key: model.snapshots[key] for key in self.snapshots.ids}
        self._changed = True


class StoredWorld(QuorumWorld):
    """The world `quorum` with real logs."""

    def __init__(self, seed: int, kind: type[StoredNode] = StoredNode) -> None:
        self.snapshot_chains: dict[SnapshotId, int] = {SnapshotId(0, 0): 0}
        self._history: list[StoredBatch] = []
        """The committed batches."""
        super().__init__(seed, kind=kind)
        # A batch may be larger than the limit of a fetch (AutoMQ's issue 2057).
        self.config = self.config._replace(snapshot_bytes=300, fetch_bytes=100 if seed % 2 else 600)

    @property
    def stored(self) -> list[StoredNode]:
        return [node for node in self.nodes.values() if isinstance(node, StoredNode)]

    def _format(self, voters: list[QuorumNode]) -> None:
        super()._format(voters)
        for node in voters:
            assert isinstance(node, StoredNode)
            (stored,) = node.disk.snapshots.values()
            write_snapshot(
                node.files,
                snapshot_path(node.folder, stored.snapshot_id),
                [],
                metadata_version=LEVEL,
                last_timestamp=0,
                now_ms=0,
                quorum=[record for record in stored.records if isinstance(record, KRaftVersionRecord | VotersRecord)],
            )

    def batch(self, number: int, records: int) -> bytearray:
        name = f"topic-{number % 5}"
        changes = [
            ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value=f"{number}.{at}")
            for at in range(records)
        ]
        return encode_batch(changes, LEVEL, 0)

    def committed(self, node: QuorumNode, high_watermark: int) -> None:
        before = self.committed_to
        super().committed(node, high_watermark)
        if self.committed_to > before:
            self._history += node.disk.between(before, self.committed_to)

    def check_image(self, image: Image) -> None:
        """Checks that an image is the fold of what is committed before its offset."""
        fold = MetadataLoader(Image("the-cluster"))
        for batch in self._history:
            if batch.next_offset <= image.offset + 1:
                for decoded in decode_batches(batch.data):
                    fold.commit(decoded)
        expected, found = ({key: dict(made.configs(key)) for key in made.configured()} for made in (fold.image, image))
        assert found == expected, f"the image at {image.offset} is not the fold of what is committed"

    def check_logs(self) -> None:
        for node in self.stored:
            disk = node.disk
            assert not disk.start_offset or any(key.offset >= disk.start_offset for key in disk.snapshots)

    def lose_disk(self, node: QuorumNode) -> None:
        super().lose_disk(node)
        assert isinstance(node, StoredNode)
        node.empty()

    def replace(self, node: StoredNode) -> None:
        """Replaces the disk of a node that doesn't start."""
        self.counts["disk replaced"] += 1
        self.dead[node.key] = node.disk.flushed
        node.disk = QuorumDisk(self.new_directory())
        node.empty()

    def is_sound(self, node: StoredNode) -> None:
        """Notes that a flipped bit has changed nothing."""
        node.flipped = False
        del self.dead[node.key]

    def heal(self) -> None:
        for node in self.stored:
            node.files.room, node.files.crash_at = None, None
            if node.flipped and node.raft is not None:  # an operator restarts it at the latest
                self.crash(node, power=False)
        super().heal()

    def settle(self) -> None:
        super().settle()
        for node in self.stored:
            if node.raft is not None and node.raft.high_watermark >= self.committed_to:
                self.check_image(node.loader.image)


# Faults of disks


def crash_in_a_call(world: StoredWorld) -> None:
    """A node's process ends, or its power is cut, in the middle of one of its next calls on a file."""
    node = world.dice.choice(world.stored)
    node.files.crash_at = node.files.calls + world.dice.randint(1, 60)


def fill(world: StoredWorld) -> None:
    """A disk is full, often the leader's, or has room again."""
    leader = world.leader()
    node = leader if leader is not None and world.dice.random() < 0.5 else world.dice.choice(world.stored)
    assert isinstance(node, StoredNode)
    node.files.room = world.dice.choice((0, 100, 1_000)) if node.files.room is None else None
    world.counts["filled"] += 1


def flip(world: StoredWorld) -> None:
    """A bit of a file of a node changes, whether the node runs or not. It is found in the last records only if the node
    has noted how far they are flushed."""
    node = world.dice.choice(world.stored)
    is_survived = not world.dead and not world.has_moved and world.survives_loss(node.key)
    finds_others = any(location != node.location for location in world.bootstrap)
    if world.is_static or not is_survived or not finds_others or not node.has_noted_flush:
        return
    files = [(path, file) for path, file in node.files.files() if file.data and not path.endswith(NEVER_DETECTED)]
    if files:
        path, file = world.dice.choice(files)
        at = world.dice.randrange(8 * len(file.data))
        for content in (file.data, *file.mappings):
            if at // 8 < len(content):
                content[at // 8] ^= 1 << at % 8
        durable = bytearray(file.durable)
        if at // 8 < len(durable):
            durable[at // 8] ^= 1 << at % 8
            file.durable = bytes(durable)
        node.flipped = True
        world.dead[node.key] = node.disk.flushed
        world.counts[f"flipped in {os.path.splitext(path)[1] or os.path.basename(path)}"] += 1


STORED_FAULTS: Final[tuple[tuple[Callable[[StoredWorld], None], int], ...]] = (
    *FAULTS,
    (snapshot, 8),
    (crash_in_a_call, 8),
    (fill, 4),
    (flip, 4),
)
STORED_KINDS: Final = [fault for fault, weight in STORED_FAULTS for _ in range(weight)]


def simulate_stored(seed: int, steps: int, kind: type[StoredNode] = StoredNode) -> StoredWorld:
    """Runs a quorum with real logs through faults, and checks it."""
    return run(StoredWorld(seed, kind), steps, STORED_KINDS)
