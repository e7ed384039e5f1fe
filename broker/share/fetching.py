"""A ShareFetch: reads, acquires, and waits for records.

Reading and acquiring are one step that no other request interrupts. A fetch with too few records waits for appends, for
records that are released or time out, and for acknowledgements that allow more records in flight. Source:
DelayedShareFetch, ShareFetchUtils (KIP-932, KIP-1206).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from broker.clock import Deadline
from broker.exchange.sleeper import Sleeper
from broker.fetch.request import FetchParams
from broker.share import reading
from broker.share.groups import ShareGroups
from broker.share.hosted import Hosted
from broker.share.sessions import PartitionId
from coordinator.share_partition.expiry import move_log_start
from coordinator.share_partition.request import Acquired, AcquireRequest
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Buffer

LOOKAHEAD_RECORDS: Final = 100
"""Records that are scanned beyond those requested, because some may be held back by their time or key."""


class PartitionAnswer(NamedTuple):
    """The records that a member gets of one partition, or the partition's error."""

    records: Buffer = b""
    acquired: Sequence[Acquired] = ()
    error: KafkaError | None = None


class Candidate(NamedTuple):
    """A share partition from which a member may acquire, with the records read from `offset` on."""

    partition_id: PartitionId
    hosted: Hosted
    offset: int
    records: memoryview


class ShareFetching:
    """The fetch of one request; `answers` has the partitions that returned records or an error."""

    def __init__(
        self,
        groups: ShareGroups,
        group_id: str,
        partition_ids: Sequence[PartitionId],
        failed: Mapping[PartitionId, KafkaError],
        acquire_request: AcquireRequest,
        limits: FetchParams,
    ) -> None:
        """`failed` has the errors of the session's partitions that this broker doesn't lead: they end the fetch."""
        self._groups = groups
        self._group_id = group_id
        self._partition_ids = partition_ids
        self._failed = {partition_id: PartitionAnswer(error=error) for partition_id, error in failed.items()}
        self._acquire_request = acquire_request
        self._limits = limits
        self.answers: dict[PartitionId, PartitionAnswer] = {}

    def attempt(self, *, is_last: bool = False) -> bool:
        """Acquires the available records, if they are enough or this is the last attempt. True if the fetch is
        complete."""
        is_over = self._attempt(is_last)
        while is_over is None:
            is_over = self._attempt(is_last)
        return is_over

    def _attempt(self, is_last: bool) -> bool | None:
        """Tries as `attempt` does; returns None to try again."""
        self.answers = dict(self._failed)
        partitions = self._hosted()
        if self._needs_no_records or len(self.answers) == len(self._partition_ids) + len(self._failed):
            return True
        candidates = self._read(partitions)
        size = sum(len(candidate.records) for candidate in candidates)
        if not is_last and size < max(self._limits.min_bytes, 1) and not self.answers:
            return False
        left = self._acquire_request.max_records
        for candidate in candidates:
            answer, count = self._acquire(candidate, left)
            left -= count
            if count:
                self.answers[candidate.partition_id] = answer
        if not self.answers and any(
            self._fetch_offset(candidate.hosted) != candidate.offset for candidate in candidates
        ):
            return None  # the records read are aborted, gone, or held back: there may be more after them
        return is_last or bool(self.answers)

    @property
    def _needs_no_records(self) -> bool:
        """True if the request asks for no records, and only gets the errors of partitions."""
        return self._acquire_request.max_records <= 0 or self._limits.max_bytes <= 0

    def _hosted(self) -> list[tuple[PartitionId, Hosted]]:
        """Returns the share partitions that can be fetched; the others are answered with their error."""
        partitions = []
        for partition_id in self._partition_ids:
            try:
                hosted = self._groups.hosted(self._group_id, partition_id)
            except KafkaError as error:
                self.answers[partition_id] = PartitionAnswer(error=error)
                continue
            if hosted.error is not None:
                self.answers[partition_id] = PartitionAnswer(error=hosted.error)
            else:
                partitions.append((partition_id, hosted))
        return partitions

    def _fetch_offset(self, hosted: Hosted) -> int | None:
        """Returns the offset to read from; None if no more records may be in flight."""
        engine = hosted.engine
        if not engine.is_active:
            return None
        if hosted.scanner is not None:
            return hosted.scanner.fetch_offset(self._acquire_request.member_id)
        return engine.next_fetch_offset() if engine.can_acquire else None

    def _read(self, partitions: Sequence[tuple[PartitionId, Hosted]]) -> list[Candidate]:
        """Reads the logs of the share partitions that may acquire more, from the fetch offset of each."""
        offsets = [(partition_id, share, self._fetch_offset(share)) for partition_id, share in partitions]
        ready = [(partition_id, share, offset) for partition_id, share, offset in offsets if offset is not None]
        candidates: list[Candidate] = []
        for partition_id, share, offset in ready:
            try:
                share.partition.traffic.reads += 1
                snapshot = share.partition.snapshot(self._limits.isolation_level)
                records = share.partition.read(snapshot, offset, self._limits.max_bytes // len(ready), True)
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and offset < share.partition.log_start_offset:
                    move_log_start(share.engine, share.partition.log_start_offset)
                    return self._read(partitions)  # from the start of the log, which is in range
                self.answers[partition_id] = PartitionAnswer(error=error)
                continue
            if records:
                candidates.append(Candidate(partition_id, share, offset, records))
        return candidates

    def _acquire(self, candidate: Candidate, left: int) -> tuple[PartitionAnswer, int]:
        """Acquires at most `left` records of one partition for the member, and returns them with their count."""
        if left <= 0:
            return PartitionAnswer(), 0
        _, hosted, offset, view = candidate
        until = max(offset, hosted.engine.end_offset + 1) + left
        scanner = hosted.scanner
        batches = reading.scan(view, until if scanner is None else until + LOOKAHEAD_RECORDS)
        aborted: Sequence[tuple[int, int]] = ()
        if self._limits.committed_only:
            aborted = reading.aborted_batches(view, batches, hosted.partition.aborted_in(offset, view))
        if scanner is not None:
            scanner.scan(view, offset, batches, aborted)
        acquired = hosted.acquire(self._acquire_request._replace(max_records=left), offset, batches, aborted)
        if not acquired:
            return PartitionAnswer(), 0
        cover = reading.covering if scanner is None else reading.sparse
        records = cover(view, batches, acquired)
        hosted.partition.traffic.bytes_out += len(records)
        return PartitionAnswer(records, acquired), sum(acquired_range.size for acquired_range in acquired)

    @property
    def others_wait(self) -> bool:
        """True if other fetches wait already for records of these partitions."""
        partitions = (self._groups.find(self._group_id, partition_id) for partition_id in self._partition_ids)
        return any(hosted is not None and hosted.queue for hosted in partitions)

    async def wait(self, *, comes_last: bool) -> None:
        """Waits until there are enough records, or the time is over. With `comes_last`, fetches that wait already go
        first: otherwise members that acknowledge records would also get all the next ones."""
        deadline = Deadline(self._groups.environment.clock, self._limits.max_wait_ms)
        if comes_last:
            await asyncio.sleep(0)
        is_over = self.attempt(is_last=deadline.is_over)
        while not is_over:
            waiter = Sleeper(1)
            timer = deadline.call(waiter.wake)
            watched = self._watch(waiter)
            try:
                await waiter.woken
                is_over = self.attempt(is_last=deadline.is_over)
            finally:
                timer.cancel()
                for hosted in watched:
                    hosted.partition.waiters.pop(waiter, None)
                    hosted.queue.done(waiter)

    def _watch(self, waiter: Sleeper) -> list[Hosted]:
        """Registers the waiter with the share partitions, and with the logs that may be read; returns the share
        partitions."""
        watched = []
        for _, hosted in self._hosted():
            hosted.queue.add(waiter)
            scanner = hosted.scanner
            if self._fetch_offset(hosted) is not None if scanner is None else scanner.awaits_log:
                hosted.partition.add_waiter(waiter)
            watched.append(hosted)
        return watched
