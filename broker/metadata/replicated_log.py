"""The metadata log of a voter: the raft core decides what is appended, truncated and committed.

Listeners get each batch once it is committed. The controller appends through `append` while this node leads; it gets
an answer by `when_committed`, or NOT_CONTROLLER if another node leads before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import Final, NoReturn

from broker.clock import Clock
from broker.metadata.damage import remove_flushed, write_flushed
from broker.metadata.followed_log import FollowedLog
from broker.metadata.led_log import CommitWaiter
from broker.metadata.log import Worker
from broker.steps import Steps
from coordinator.cluster.quorum_state import QuorumState
from coordinator.cluster.record import MetadataBatch, MetadataRecord
from coordinator.cluster.snapshot import SnapshotId, read_snapshot, snapshot_path
from coordinator.quorum.ready import AppendBatches, LeaderAndRole, ReadRecords, RecoveredLog
from coordinator.quorum.roles import Role
from coordinator.quorum.voter_set import ControlRecord
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import iter_batches, read_header, validate
from protocol.records.control import VotersRecord
from storage.disk import Disk
from storage.failure import LogDirFull
from storage.log import Log
from storage.producers.entry import Origin

STATES: Final = {role: role.value.lower() for role in Role} | {Role.RESIGNED: "unattached"}
"""The values of Kafka's metric current-state."""


def _propose_nothing(_: bytearray) -> NoReturn:
    raise KafkaError(ErrorCode.NOT_CONTROLLER, "this node does not take part in the quorum yet")


class ReplicatedLog(FollowedLog):
    """The metadata log of a voter."""

    def __init__(self, log: Log, quorum: QuorumState, *, disk: Disk, clock: Clock, worker: Worker) -> None:
        super().__init__(log, quorum, disk=disk, clock=clock, worker=worker)
        self.stored = quorum
        """The state in `quorum-state`."""
        self._role = "unattached"
        self.failed: KafkaError | None = None
        """Set after a failed write or flush: this node no longer takes part in the quorum."""
        self.on_failure: Callable[[KafkaError], None] = lambda _: None
        self.propose: Callable[[bytearray], int] = _propose_nothing
        """Appends a batch through the raft core, and returns the offset after it."""
        self._proposed: Sequence[MetadataRecord] = ()
        """The records of the batch that is being proposed."""
        self._uncommitted: deque[MetadataBatch] = deque()
        self._waiters: deque[CommitWaiter] = deque()
        self._applied_to = 0
        """The offset before which listeners have all records."""
        self.is_loaded = False
        """True once listeners have all records that were committed before this node started: a leader has told the high
        watermark."""
        self._steps = Steps(clock)
        self._noting_flushed = Lock()
        """Held while the flushed offset is written, so that a flush doesn't write an offset that was truncated."""

    @property
    def uncommitted(self) -> Sequence[MetadataBatch]:
        """The batches that this node has proposed and that listeners don't have yet, in order."""
        return tuple(self._uncommitted)

    @property
    def role(self) -> str:
        return self._role

    @property
    def voted_id(self) -> int:
        return self.leader_id if self._role == "leader" else self.stored.voted_id

    def led(self, leader: LeaderAndRole, *, is_voter: bool) -> None:
        """Notes a new leader, epoch or role."""
        self.epoch, self.leader_id = leader.epoch, leader.leader_id
        self._role = STATES[leader.role] if is_voter or leader.role is not Role.FOLLOWER else "observer"
        for listener in self._role_listeners:
            listener(self._role, self.leader_id)

    def store(self, state: QuorumState) -> None:
        super().store(state)
        self.stored = state

    def begin_at(self, snapshot_id: SnapshotId) -> None:
        super().begin_at(snapshot_id)
        self._applied_to = snapshot_id.offset

    def recover(self) -> RecoveredLog:
        """Flushes the records of the previous run, and returns what the raft core needs of the log. Raises
        LogDirFailure, LogDirFull, KafkaError and ProtocolError."""
        self.flush()
        epochs = tuple((entry.epoch, entry.start_offset) for entry in self._log.epochs.entries)
        snapshots = tuple(self.snapshots())
        return RecoveredLog(self.start_offset, self.end_offset, epochs, snapshots, tuple(self._control()))

    def voters(self, static: Iterable[int]) -> list[int]:
        """Returns the voters of the log's end; `static` are those of the configuration, which count if the log has
        none."""
        sets = [record for _, record in self._control() if isinstance(record, VotersRecord)]
        return sorted(voter.voter_id for voter in sets[-1].voters) if sets else sorted(static)

    def _control(self) -> list[ControlRecord]:
        """Returns the control records of the last snapshot, then those of the log after it."""
        snapshots = self.snapshots()
        control = list(self._control_of(snapshots[-1])) if snapshots else []
        start = max(self.start_offset, snapshots[-1].offset if snapshots else 0)
        for batch in self._read(start, self.end_offset):
            control += [ControlRecord(batch.base_offset + index, record) for index, record in enumerate(batch.quorum)]
        return control

    def _control_of(self, snapshot_id: SnapshotId) -> Iterator[ControlRecord]:
        for record in read_snapshot(self._disk, snapshot_path(self.directory, snapshot_id)).quorum:
            yield ControlRecord(snapshot_id.offset - 1, record)

    def append(self, encoded: bytearray, records: Sequence[MetadataRecord]) -> int:
        """Proposes the records, which are encoded as a batch, and returns the offset after it. Raises NOT_CONTROLLER if
        this node doesn't lead, with nothing written."""
        self._proposed = records
        try:
            return self.propose(encoded)
        finally:
            self._proposed = ()

    def write(self, batches: AppendBatches) -> None:
        """Appends batches of the raft core. Raises KafkaError, LogDirFailure, LogDirFull."""
        view = memoryview(batches.data)
        self._log.append(view, leader_epoch=batches.epoch, now_ms=self._clock.now_ms(), origin=Origin.REPLICATION)
        if self.end_offset != batches.next_offset:
            message = f"{self.directory}: ends at offset {self.end_offset}, not at {batches.next_offset}"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
        if self._proposed:
            header = read_header(view)
            self._uncommitted.append(
                MetadataBatch(
                    header.base_offset,
                    header.last_offset,
                    batches.epoch,
                    header.size_bytes,
                    header.max_timestamp,
                    self._proposed,
                )
            )

    def cut_back(self, offset: int) -> None:
        """Truncates the log, so that it ends at this offset. For a worker thread. Raises LogDirFailure, or
        LogDirFull with nothing truncated."""
        with self._noting_flushed:
            if offset < self._log.recovery_point:
                with self.failing("truncating"):
                    remove_flushed(self.directory, self._disk)
            self._log.truncate_between_flushes(offset, self._clock.now_ms(), may_be_full=True)

    def flush(self) -> None:
        """Flushes all appended records. For a worker thread. Raises LogDirFailure, LogDirFull."""
        self._log.flush(self._clock.now_ms())
        with self._noting_flushed, suppress(LogDirFull), self.failing("writing the flushed offset of"):
            write_flushed(self.directory, self._log.recovery_point, self._disk)

    def records(self, wish: ReadRecords) -> bytes:
        """Returns whole batches from an offset on. Raises KafkaError, with nothing sent, if they are not what was
        appended; LogDirFailure."""
        parts = self._log.read(wish.offset, wish.max_bytes).parts
        if not parts:
            return b""
        self._check(parts[0], wish.offset)
        return bytes(parts[0])

    def _check(self, data: memoryview, offset: int) -> None:
        for position, header in iter_batches(data):
            expected = (offset, self._log.epochs.epoch_for_offset(offset))
            if (header.base_offset, header.partition_leader_epoch) != expected:
                found = f"the batch at offset {offset} has offset {header.base_offset}"
                message = f"{self.directory}: {found} and epoch {header.partition_leader_epoch}: it is damaged"
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
            validate(data, position, header)
            offset = header.next_offset

    def commit(self, high_watermark: int) -> None:
        """Gives listeners the records before the high watermark, now or in the next turns of the event loop."""
        if high_watermark > self.high_watermark:
            self._log.update_high_watermark(high_watermark)
            self._steps.run(self._committing(high_watermark))

    def _committing(self, target: int) -> Iterator[None]:
        try:
            while self._applied_to < target:
                for batch in self._next_batches(target):
                    if batch.next_offset > target:
                        return
                    yield from self._notify(batch)
                    self._applied_to = batch.next_offset
                    self._release()
            self.is_loaded = True
        except Exception as failure:  # a node that has applied half of a batch must not continue
            self.fail(failure)

    def _next_batches(self, target: int) -> Iterator[MetadataBatch]:
        """Yields the next committed batches: proposed ones from memory, others from the log."""
        own = self._uncommitted
        if own and own[0].base_offset == self._applied_to:
            yield own.popleft()
        else:
            yield from self._read(self._applied_to, min(own[0].base_offset, target) if own else target)

    async def applied(self) -> None:
        """Returns once listeners have all records that are committed now."""
        await self._steps.over()

    def when_committed(self, offset: int, then: Callable[[KafkaError | None], None]) -> None:
        """Calls `then` once every record before `offset` is committed and listeners have it, or with the error if it
        can't be."""
        if offset <= self._applied_to:
            then(None)
        elif self.failed is not None:
            then(self.failed)
        else:
            self._waiters.append(CommitWaiter(offset, then))

    def commit_soon(self) -> None:
        """Does nothing: the raft core flushes what it has appended."""

    def _release(self) -> None:
        while self._waiters and self._waiters[0].offset <= self._applied_to:
            self._waiters.popleft().then(None)

    def abandon(self, error: KafkaError) -> None:
        """Forgets the records that were proposed and are not committed, because this node no longer leads: whoever
        waits for them gets the error."""
        self._uncommitted.clear()
        waiters = list(self._waiters)
        self._waiters.clear()
        for waiter in waiters:
            waiter.then(error)

    def restart_at(self, snapshot_id: SnapshotId) -> None:
        """Empties the log and starts it after a snapshot. For a worker thread. Raises LogDirFailure."""
        now_ms = self._clock.now_ms()
        self._log.truncate_between_flushes(snapshot_id.offset, now_ms, fully=True)
        self._log.assign_leader_epoch(snapshot_id.epoch, snapshot_id.offset)
        self._applied_to = snapshot_id.offset

    def fail(self, error: BaseException) -> None:
        """Ends this node's part in the quorum after a failed write or flush, or a fault."""
        if self.failed is not None:
            return
        if isinstance(error, KafkaError):
            self.failed = error
        elif isinstance(error, OSError):
            self.failed = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.directory}: {error}")
        else:
            message = f"a fault of this node's part in the quorum: {type(error).__name__}: {error}"
            self.failed = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.abandon(self.failed)
        self.on_failure(self.failed)

    def close(self) -> None:
        self._steps.stop()
        super().close()
