"""The metadata log of a quorum whose only voter is this node.

What is in it is committed once it is on the device, for there is nobody else to have it. Source: KIP-595; Kafka's
KafkaRaftClient, as a leader without followers goes through it.
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


class Waiting(NamedTuple):
    """Who is to be told when everything before an offset is committed."""

    offset: int
    committed: asyncio.Future[None]


class LedLog(MetadataLog):
    """The log, once it is led: `lead` comes first."""

    def __init__(self, log: Log, quorum: QuorumState, *, disk: Disk, clock: RuntimeClock, worker: Worker) -> None:
        super().__init__(log, quorum, disk=disk, clock=clock, worker=worker)
        self.failed: KafkaError | None = None
        """Set once a flush failed: nothing more is appended, what was is not known to be there."""
        self.on_failure: Callable[[KafkaError], None] = lambda _: None
        self._uncommitted: deque[MetadataBatch] = deque()
        self._waiting: deque[Waiting] = deque()
        self._flushing = False

    @property
    def uncommitted(self) -> Sequence[MetadataBatch]:
        """What was appended and is not committed, in order."""
        return tuple(self._uncommitted)

    def lead(self, node_id: int, voters: VotersRecord) -> None:
        """Win an election without opponents: the epoch is one more than any before, it is made durable, and a control
        batch begins it. Returns once that batch, and with it all that there was, is committed.

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
        """Append the records in one batch; the offset behind it. Raises KafkaError, with nothing written."""
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
        """Returns once everything before `offset` is committed. One flush serves all who came before it began.

        Raises KafkaError where it will not be.
        """
        if self.failed is None and offset > self.high_watermark and not self._flushing:
            self._flush()
        if self.failed is not None:
            raise self.failed
        if offset > self.high_watermark:
            waiting = Waiting(offset, asyncio.get_running_loop().create_future())
            self._waiting.append(waiting)
            await waiting.committed

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
            except Exception as failure:  # who sees half of what is committed must not go on
                self._fail(failure)
                return
            if self._waiting and not self._flushing:
                self._flush()

        self._worker.run(lambda: self._log.flush(now_ms), flushed)

    def _commit(self, offset: int) -> None:
        """Everything before the offset is committed: listeners get it, then those are told who wait for it."""
        self._log.update_high_watermark(offset)
        while self._uncommitted and self._uncommitted[0].last_offset < offset:
            self._tell(self._uncommitted.popleft())
        while self._waiting and self._waiting[0].offset <= offset:
            future = self._waiting.popleft().committed
            if not future.done():  # whoever waited may be gone
                future.set_result(None)

    def _fail(self, error: BaseException) -> None:
        message = f"the cluster metadata could not be made durable: {error}"
        self.failed = error if isinstance(error, KafkaError) else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        while self._waiting:
            future = self._waiting.popleft().committed
            if not future.done():
                future.set_exception(self.failed)
        self.on_failure(self.failed)
