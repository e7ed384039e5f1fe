"""The metadata log of a quorum whose only voter is this node.

Its records are committed once they are on the device, since there are no other voters. Source: KIP-595; Kafka's
KafkaRaftClient, as far as it concerns a leader without followers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from broker.metadata.log import MetadataLog, Worker
from coordinator.cluster.quorum import encode_quorum, leader_change
from coordinator.cluster.quorum_state import QuorumState, write_quorum_state
from coordinator.cluster.record import MetadataBatch, MetadataRecord, encode_batch
from coordinator.runtime import RuntimeClock
from protocol.errors import ErrorCode, KafkaError
from protocol.records.control import QuorumRecord, VotersRecord
from storage.disk import Disk
from storage.log import Log
from storage.producers.entry import Origin


class CommitWaiter(NamedTuple):
    """Waits until every record before an offset is committed."""

    offset: int
    committed: asyncio.Future[None]


class LedLog(MetadataLog):
    """The metadata log of the quorum's leader. `lead` comes before all else."""

    def __init__(self, log: Log, quorum: QuorumState, *, disk: Disk, clock: RuntimeClock, worker: Worker) -> None:
        super().__init__(log, quorum, disk=disk, clock=clock, worker=worker)
        self.failed: KafkaError | None = None
        """Set once a flush failed: nothing more is appended, and the last records may not be durable."""
        self.on_failure: Callable[[KafkaError], None] = lambda _: None
        self._uncommitted: deque[MetadataBatch] = deque()
        self._waiters: deque[CommitWaiter] = deque()
        self._flushing = False

    @property
    def uncommitted(self) -> Sequence[MetadataBatch]:
        """The batches that were appended and are not committed, in order."""
        return tuple(self._uncommitted)

    def lead(self, node_id: int, voters: VotersRecord) -> None:
        """Begins an epoch as its leader, as after an election without opponents: the epoch is one more than any before
        it, is made durable, and begins with a control batch. Returns once that batch is committed, and with it all
        records before.

        Raises LogDirFailure, LogDirFull.
        """
        self.epoch = max(self.epoch, self._log.last_leader_epoch, 0) + 1
        write_quorum_state(self._disk, self._log.directory, QuorumState(leader_id=node_id, leader_epoch=self.epoch))
        now_ms = self._clock.now_ms()
        opening = leader_change(node_id, voters if self.end_offset == 0 else None)
        self._append(encode_quorum(opening, now_ms), (), opening)
        self._log.flush(now_ms)
        self._commit(self.end_offset)

    def append(self, records: Sequence[MetadataRecord], metadata_version: int) -> int:
        """Appends the records in one batch, and returns the offset behind it. Raises KafkaError, with nothing
        written."""
        return self._append(encode_batch(records, metadata_version, self._clock.now_ms()), records, ())

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

    async def committed(self, offset: int) -> None:
        """Returns once every record before `offset` is committed. One flush serves all who came before it began.

        Raises KafkaError when a flush failed.
        """
        if self.failed is None and offset > self.high_watermark and not self._flushing:
            self._flush()
        if self.failed is not None:
            raise self.failed
        if offset > self.high_watermark:
            waiter = CommitWaiter(offset, asyncio.get_running_loop().create_future())
            self._waiters.append(waiter)
            await waiter.committed

    def _flush(self) -> None:
        self._flushing = True
        now_ms, end_offset = self._clock.now_ms(), self.end_offset

        def flushed(error: BaseException | None) -> None:
            self._flushing = False
            if error is not None:
                self._fail(error)
                return
            try:
                self._commit(end_offset)
            except Exception as failure:  # a broker that has applied half of a batch must not go on
                self._fail(failure)
                return
            if self._waiters and not self._flushing:
                self._flush()

        self._worker.run(lambda: self._log.flush(now_ms), flushed)

    def _commit(self, offset: int) -> None:
        """Commits every record before the offset: first listeners get them, then the waiters go on."""
        self._log.update_high_watermark(offset)
        while self._uncommitted and self._uncommitted[0].last_offset < offset:
            self._notify(self._uncommitted.popleft())
        while self._waiters and self._waiters[0].offset <= offset:
            future = self._waiters.popleft().committed
            if not future.done():  # the request may have been cancelled
                future.set_result(None)

    def _fail(self, error: BaseException) -> None:
        message = f"the cluster metadata could not be made durable: {error}"
        self.failed = error if isinstance(error, KafkaError) else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        while self._waiters:
            future = self._waiters.popleft().committed
            if not future.done():
                future.set_exception(self.failed)
        self.on_failure(self.failed)
