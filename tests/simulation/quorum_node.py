"""A node of a simulated quorum: the raft core on a disk that loses what is not flushed, and the caller that carries out
each `Ready`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.quorum_state import QuorumState
from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.leadership import Location
from coordinator.quorum.leading import fill_piece
from coordinator.quorum.observer import BeginSnapshot, DropSnapshot, WritePiece
from coordinator.quorum.pieces import PieceWish, SnapshotPiece
from coordinator.quorum.raft import Raft
from coordinator.quorum.ready import (
    AdoptSnapshot,
    AppendBatches,
    Flush,
    LeaderAndRole,
    LocalReplica,
    RaftConfig,
    RaftReply,
    ReadRecords,
    Ready,
    RecoveredLog,
    Request,
    Response,
    Send,
    TruncateTo,
    Write,
)
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.roles import Role
from coordinator.quorum.rules import Rules
from coordinator.quorum.voter_set import VoterSet
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from protocol.messages.fetch import FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotResponse
from protocol.records.control import KRaftVersionRecord
from protocol.types import Uuid
from tests.simulation.faulty_disk import Crash
from tests.simulation.quorum_disk import QuorumDisk, StoredBatch, StoredSnapshot, is_whole

LISTENER: Final = "CONTROLLER"
PORT: Final = 9093
CONFIG: Final = RaftConfig(snapshot_bytes=60, fetch_bytes=300)


class NodeSurroundings(Protocol):
    """The world, as a node knows it."""

    now_ms: int
    crashes: float
    dice: Random
    config: RaftConfig
    rules: Rules
    counts: Counter[str]
    static_voters: VoterSet
    bootstrap: tuple[Location, ...]
    snapshot_contents: dict[bytes, StoredSnapshot]

    def new_directory(self) -> Uuid: ...
    def version_of(self, request: object) -> int: ...
    def after(self, delay_ms: int, event: Callable[[], None]) -> None: ...
    def schedule_tick(self, node: QuorumNode, at_ms: int) -> None: ...
    def deliver_request(self, node: QuorumNode, send: Send) -> None: ...
    def deliver_response(
        self, node: QuorumNode, sender: tuple[int, int], response: Response | ApiVersionsResponse
    ) -> None: ...
    def operator_answered(self, response: Response) -> None: ...
    def crash(self, node: QuorumNode, *, power: bool) -> None: ...
    def led(self, node: QuorumNode, leader: LeaderAndRole) -> None: ...
    def committed(self, node: QuorumNode, high_watermark: int) -> None: ...
    def appended(self, node: QuorumNode, batch: StoredBatch) -> None: ...


class Crashed(Exception):
    """The node's process ends in the middle of a `Ready`."""


class QuorumNode:
    """A node, running or not."""

    def __init__(self, world: NodeSurroundings, node_id: int, *, can_vote: bool) -> None:
        self.world = world
        self.node_id = node_id
        self.can_vote = can_vote
        self.disk = QuorumDisk(world.new_directory())
        self.raft: Raft | None = None
        self.incarnation = 0
        self.clock_ms = 0
        """Milliseconds by which the node's clock has jumped."""
        self.port = PORT
        self.auto_join = False
        self.flushes_ms = 5
        self._is_flushing = False
        self._next_flush: Flush | None = None
        self._appended: list[StoredBatch] = []
        self._flush_target = 0
        """The end of what the flush in progress makes durable; truncations since it began lower it."""
        self._ticket = 0
        self._tickets: dict[int, tuple[int, int] | None] = {}
        """The node and the correlation id that wait for each reply; None for the operator."""
        self._high_watermark = 0
        self._role: Role | None = None

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.disk.directory_id)

    @property
    def location(self) -> Location:
        return Location(f"n{self.node_id}", self.port)

    @property
    def now_ms(self) -> int:
        return self.world.now_ms + self.clock_ms

    # The process

    def start(self) -> None:
        """Starts the process on the files of before."""
        world = self.world
        self.incarnation += 1
        self._is_flushing, self._next_flush = False, None
        self._appended = []
        self._tickets = {}
        replica = LocalReplica(
            "the-cluster", self.key, (Endpoint(LISTENER, *self.location),) if self.can_vote else (), LISTENER,
            self.can_vote,
        )  # fmt: skip
        self.raft = Raft(
            replica,
            world.config._replace(auto_join=self.auto_join),
            self.recovered(),
            self.disk.state,
            world.static_voters,
            world.bootstrap,
            world.dice.randrange,
            lambda: world.now_ms,
            self.now_ms,
            world.rules,
        )
        self._high_watermark = self.raft.high_watermark
        self._role = None
        self.carry_out()

    def recovered(self) -> RecoveredLog:
        """Returns the log as it is found at start."""
        return self.disk.recovered()

    def stop(self, *, power: bool) -> None:
        """Ends the process, or cuts the machine's power."""
        self.raft = None
        if power:
            self.disk.lose_power(self.world.dice)

    # Inputs

    def receive(self, request: Request | ApiVersionsRequest, sender: tuple[int, int] | None) -> None:
        """Handles a request; `sender` is the node and its correlation id, None for the operator."""
        if self.raft is None:
            return
        if isinstance(request, ApiVersionsRequest):
            assert sender is not None
            feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            response = ApiVersionsResponse(error_code=0, api_keys=[], supported_features=[feature])
            self.world.deliver_response(self, sender, response)
            return
        self._ticket += 1
        self._tickets[self._ticket] = sender
        self.raft.request(request, self.world.version_of(request), LISTENER, self._ticket, self.now_ms)
        self.carry_out()

    def answered(self, correlation_id: int, response: Response | ApiVersionsResponse | ErrorCode) -> None:
        if self.raft is not None:
            self.raft.response(correlation_id, response, self.now_ms)
            self.carry_out()

    def tick(self) -> None:
        if self.raft is not None:
            self.raft.tick(self.now_ms)
            self.carry_out()

    # What leaves

    def carry_out(self) -> None:
        """Carries out what the core wants, until it wants nothing more."""
        try:
            self._carry_out()
        except (Crashed, Crash):
            self.world.crash(self, power=self.world.dice.random() < 0.5)

    def _carry_out(self) -> None:
        raft, world = self.raft, self.world
        assert raft is not None
        ready = raft.ready()
        adopt = None
        for write in ready.writes:
            self._may_crash()
            adopt = self._write(write) or adopt
        self._may_crash()
        if ready.quorum_state is not None:
            assert ready.quorum_state.leader_epoch >= self.disk.state.leader_epoch, "the epoch goes back"
            self.store(ready.quorum_state)
            self._may_crash()
        appended, self._appended = self._appended, []
        for batch in appended:  # only now can others see them: a crash before may take them with their epoch
            world.appended(self, batch)
        self._notice(ready)
        for send in ready.sends:
            world.deliver_request(self, send)
        for reply in ready.replies:
            self._reply(reply)
        if ready.flush is not None:
            self._flush(ready.flush)
        if adopt is not None:
            self._adopt(raft, adopt)
        world.schedule_tick(self, raft.deadline_ms - self.clock_ms)

    def store(self, state: QuorumState) -> None:
        """Stores `quorum-state` durably."""
        self.disk.state = state

    def read(self, wish: ReadRecords) -> bytes:
        """Returns batches of the log."""
        return self.disk.read(wish.offset, wish.max_bytes)

    def read_piece(self, wish: PieceWish) -> SnapshotPiece | None:
        """Returns a piece of a snapshot; None if it is gone."""
        snapshot = self.disk.snapshots.get(wish.snapshot_id)
        content = b"" if snapshot is None else snapshot.content
        piece = SnapshotPiece(content[wish.position : wish.position + wish.max_bytes], len(content))
        return piece if content else None

    def make_durable(self, offset: int) -> None:
        """Makes everything before an offset survive a power cut."""
        self.disk.flushed = max(self.disk.flushed, offset)

    def _may_crash(self) -> None:
        if self.world.crashes and self.world.dice.random() < self.world.crashes:
            raise Crashed

    def _write(self, write: Write) -> SnapshotId | None:
        disk = self.disk
        if isinstance(write, AppendBatches):
            self._appended += disk.append(write)
        elif isinstance(write, TruncateTo):
            assert write.offset >= self._high_watermark, f"node {self.node_id} truncates below its high watermark"
            self.world.counts["truncated"] += 1
            disk.truncate(write.offset)
            self._flush_target = min(self._flush_target, write.offset)
        elif isinstance(write, BeginSnapshot):
            disk.parts[write.snapshot_id] = bytearray()
        elif isinstance(write, WritePiece):
            part = disk.parts[write.snapshot_id]
            assert len(part) == write.position
            part += write.content
        elif isinstance(write, DropSnapshot):
            disk.parts.pop(write.snapshot_id, None)
        else:
            assert isinstance(write, AdoptSnapshot)
            return write.snapshot_id
        return None

    def _adopt(self, raft: Raft, snapshot_id: SnapshotId) -> None:
        content = bytes(self.disk.parts.pop(snapshot_id))
        snapshot = self.world.snapshot_contents.get(content)
        assert raft.role is not Role.LEADER, "a leader loads a snapshot"
        if snapshot is None or not is_whole(content):
            self.world.counts["damaged snapshot"] += 1
            raft.rejected(snapshot_id, self.now_ms)
        else:
            self.world.counts["adopted"] += 1
            self.disk.replace(snapshot)
            self._flush_target = 0
            raft.adopted(snapshot_id, snapshot.records, self.now_ms)
        self._carry_out()

    def _notice(self, ready: Ready) -> None:
        raft, world = self.raft, self.world
        assert raft is not None
        world.counts["problems"] += len(ready.problems)
        if ready.leader is not None:
            world.led(self, ready.leader)
        if ready.high_watermark is not None:
            assert ready.high_watermark >= self._high_watermark, "the high watermark goes back"
            self._high_watermark = ready.high_watermark
            world.committed(self, ready.high_watermark)

    def _reply(self, reply: RaftReply) -> None:
        sender = self._tickets.pop(reply.ticket, (0, 0))
        assert sender != (0, 0), f"ticket {reply.ticket} is answered twice"
        response = reply.response
        if isinstance(reply.read, ReadRecords):
            assert isinstance(response, FetchResponse)
            response.responses[0].partitions[0].records = self.read(reply.read)
        elif reply.read is not None:
            assert isinstance(response, FetchSnapshotResponse)
            fill_piece(response, self.read_piece(reply.read))
        if sender is None:
            self.world.operator_answered(response)
        else:
            self.world.deliver_response(self, sender, response)

    def _flush(self, token: Flush) -> None:
        self._next_flush = token
        if not self._is_flushing:
            self._is_flushing, self._next_flush = True, None
            self._flush_target = self.disk.end_offset
            incarnation = self.incarnation
            delay_ms = self.world.dice.randint(0, self.flushes_ms)
            self.world.after(delay_ms, lambda: self._flushed(token, incarnation))

    def _flushed(self, token: Flush, incarnation: int) -> None:
        if self.raft is None or incarnation != self.incarnation:
            return
        self._is_flushing = False
        self.make_durable(self._flush_target)
        self.raft.flushed(token, self.now_ms)
        waiting, self._next_flush = self._next_flush, None
        self.carry_out()
        if waiting is not None and self.raft is not None and not self._is_flushing:
            self._flush(waiting)

    # Snapshots

    def make_snapshot(self, *, cut: bool) -> None:
        """Makes a snapshot of what is committed, and perhaps removes what it replaces."""
        raft, disk = self.raft, self.disk
        assert raft is not None
        ends = [batch for batch in disk.batches if batch.next_offset <= raft.high_watermark]
        if not ends:
            return
        last = self.world.dice.choice(ends[-3:])
        snapshot_id = SnapshotId(last.next_offset, last.epoch)
        voters, level = raft.voters_before(last.next_offset)
        records = (KRaftVersionRecord(version=0, k_raft_version=level), voters.to_record()) if level else ()
        snapshot = StoredSnapshot(snapshot_id, last.chain, records)
        if any(other.offset >= snapshot_id.offset for other in disk.snapshots):
            return
        disk.snapshots[snapshot_id] = snapshot
        self.world.snapshot_contents[snapshot.content] = snapshot
        if cut:
            disk.cut(snapshot_id.offset)
            disk.flushed = max(disk.flushed, snapshot_id.offset)
        raft.snapshots_changed(disk.start_offset, sorted(disk.snapshots, key=lambda key: (key.epoch, key.offset)))
        self.world.counts["cut" if cut else "snapshot"] += 1
