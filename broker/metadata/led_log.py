"""The metadata log of a node that no other node can reach, and that is so the only voter.

Its records are committed once they are flushed, because there are no other voters.

Source: KIP-595; Kafka's KafkaRaftClient, for a leader without other voters.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from broker.clock import Clock
from broker.metadata.log import MetadataLog, Worker
from broker.steps import Steps
from coordinator.cluster.quorum import encode_quorum
from coordinator.cluster.quorum_state import QuorumState, write_quorum_state
from coordinator.cluster.record import MetadataBatch, MetadataRecord
from protocol.errors import ErrorCode, KafkaError
from protocol.records.control import QuorumRecord
from storage.disk import Disk
from storage.log import Log
from storage.producers.entry import Origin


class CommitWaiter(NamedTuple):
    """Is called once every record before an offset is committed, or can't be."""

    offset: int
    then: Callable[[KafkaError | None], None]


class LedLog(MetadataLog):
    """The metadata log of the quorum's leader. Call `recover` first, then `lead`."""

    def __init__(self, log: Log, quorum: QuorumState, *, disk: Disk, clock: Clock, worker: Worker) -> None:
        super().__init__(log, quorum, disk=disk, clock=clock, worker=worker)
        self.failed: KafkaError | None = None
        """Set after a failed flush: nothing more is appended, and the last records may not be durable."""
        self.on_failure: Callable[[KafkaError], None] = lambda _: None
        self._uncommitted: deque[MetadataBatch] = deque()
        self._waiters: deque[CommitWaiter] = deque()
        self._is_committing = False
        self._committed_to = 0
        """The offset before which listeners have all records."""
        self._steps = Steps(clock)

    @property
    def uncommitted(self) -> Sequence[MetadataBatch]:
        """The batches that were appended and that listeners don't have yet, in order."""
        return tuple(self._uncommitted)

    @property
    def role(self) -> str:
        return "leader"

    @property
    def voted_id(self) -> int:
        return self.leader_id

    def recover(self) -> None:
        """Flushes all records of the previous run, which commits them. Raises LogDirFailure, LogDirFull."""
        self._log.flush(self._clock.now_ms())
        self._log.update_high_watermark(self.end_offset)
        self._committed_to = self.end_offset

    def lead(
        self, node_id: int, opening: Sequence[QuorumRecord], voters: tuple[int, ...] | None, *, ahead: int = 1
    ) -> None:
        """Begins a new epoch with this node as its leader, as after an election: the epoch is `ahead` of any that this
        node knows. It begins with the control batch `opening`. `voters` are those of the configuration; None if the log
        has them. Returns once the batch is committed.

        The log gets the epoch before `quorum-state` does, so a log that ends in an older epoch than `quorum-state` has
        lost records. Raises LogDirFailure, LogDirFull.
        """
        self.epoch = max(self.epoch, self._log.last_leader_epoch, 0) + ahead
        now_ms = self._clock.now_ms()
        self._append(encode_quorum(opening, now_ms), (), opening)
        self._log.flush(now_ms)
        state = QuorumState(leader_id=node_id, leader_epoch=self.epoch, voters=voters)
        write_quorum_state(self._disk, self._log.directory, state)
        self.leader_id = node_id
        self._steps.run(self._commit(self.end_offset))

    def append(self, encoded: bytearray, records: Sequence[MetadataRecord]) -> int:
        """Appends the records, which are encoded as a batch, and returns the offset after it. Raises KafkaError, with
        nothing written."""
        return self._append(encoded, records, ())

    def _append(self, encoded: bytearray, records: Sequence[MetadataRecord], quorum: Sequence[QuorumRecord]) -> int:
        if self.failed is not None:
            raise self.failed
        now_ms = self._clock.now_ms()
        appended = self._log.append(
            memoryview(encoded), leader_epoch=self.epoch, now_ms=now_ms, origin=Origin.COORDINATOR
        )
        batch = MetadataBatch(
            appended.base_offset, appended.last_offset, self.epoch, len(encoded), now_ms, records, quorum
        )
        self._uncommitted.append(batch)
        return batch.next_offset

    def when_committed(self, offset: int, then: Callable[[KafkaError | None], None]) -> None:
        """Calls `then` once every record before `offset` is committed, or with the error of a flush that failed. One
        flush serves all callers that waited before it began."""
        if self.failed is not None or offset <= self._committed_to:
            then(None if offset <= self._committed_to else self.failed)
            return
        self._waiters.append(CommitWaiter(offset, then))
        self.commit_soon()

    async def committed(self, offset: int) -> None:
        """Returns once every record before `offset` is committed. Raises KafkaError if a flush fails."""
        committed: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
        self.when_committed(offset, lambda error: None if committed.done() else committed.set_result(error))
        if (error := await committed) is not None:
            raise error

    def commit_soon(self) -> None:
        """Starts to commit the appended records, unless a commit is in progress."""
        if self.failed is None and self.end_offset > self._committed_to and not self._is_committing:
            self._flush()

    def close(self) -> None:
        self._steps.stop()
        super().close()

    def _flush(self) -> None:
        self._is_committing = True
        now_ms, end_offset = self._clock.now_ms(), self.end_offset

        def flushed(error: BaseException | None) -> None:
            if error is not None:
                self._fail(error)
            else:
                self._steps.run(self._committing(end_offset))

        self._worker.run(lambda: self._log.flush(now_ms), flushed)

    def _committing(self, offset: int) -> Iterator[None]:
        """Commits every record before the offset, then flushes the records that were appended meanwhile."""
        try:
            yield from self._commit(offset)
        except Exception as failure:  # a broker that has applied half of a batch must not continue
            self._fail(failure)
            return
        self._is_committing = False
        self.commit_soon()

    def _commit(self, offset: int) -> Iterator[None]:
        """Commits every record before the offset: listeners get them first, then the waiters continue."""
        self._log.update_high_watermark(offset)
        while self._uncommitted and self._uncommitted[0].last_offset < offset:
            yield from self._notify(self._uncommitted[0])
            self._uncommitted.popleft()
        self._committed_to = offset
        while self._waiters and self._waiters[0].offset <= offset:
            self._waiters.popleft().then(None)

    def _fail(self, error: BaseException) -> None:
        message = f"the cluster metadata could not be made durable: {error}"
        self.failed = error if isinstance(error, KafkaError) else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        while self._waiters:
            self._waiters.popleft().then(self.failed)
        self.on_failure(self.failed)
