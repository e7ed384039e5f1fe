"""A ShareFetch: reads, acquires, and waits for records.

Reading and acquiring are one step that no other request interrupts. Only a fetch of many partitions handles them in
turns; it then acquires nothing from a share partition that has changed meanwhile. A fetch with too few records
waits for appends, for records that are released or time out, and for acknowledgements that allow more records in
flight. Source: DelayedShareFetch, ShareFetchUtils (KIP-932, KIP-1206).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from broker.clock import Deadline, next_turn
from broker.fetch.request import FetchParams
from broker.request.sleeper import Sleeper
from broker.request.turns import Turns
from broker.share import reading
from broker.share.groups import ShareGroups
from broker.share.hosted import Hosted
from broker.share.sessions import PartitionId
from coordinator.share_partition.expiry import move_log_start
from coordinator.share_partition.request import Acquired, AcquireRequest
from protocol.errors import KafkaError
from protocol.types import Buffer

UNWATCHED_AT_ONCE: Final = 5_000
"""Number of share partitions from which a fetch removes its waiter in one turn of the event loop. Each takes a
microsecond."""

LOOKAHEAD_RECORDS: Final = 100
"""Records that are scanned beyond those requested, because records may be held back by their delivery time or key."""


class PartitionAnswer:
    """The records that a member gets of one partition, or the partition's error."""

    __slots__ = ("acquired", "error", "records")

    def __init__(
        self, records: Buffer = b"", acquired: Sequence[Acquired] = (), error: KafkaError | None = None
    ) -> None:
        self.records = records
        self.acquired = acquired
        self.error = error


class Candidate:
    """A share partition from which a member may acquire, with the records read from `offset` on."""

    __slots__ = ("hosted", "offset", "partition_id", "records")

    def __init__(self, partition_id: PartitionId, hosted: Hosted, offset: int, records: memoryview) -> None:
        self.partition_id = partition_id
        self.hosted = hosted
        self.offset = offset
        self.records = records


class ShareFetching:
    """The fetch of one request; `answers` has the partitions that returned records or an error."""

    def __init__(
        self,
        groups: ShareGroups,
        group_id: str,
        partition_ids: Sequence[PartitionId],
        failed: Mapping[PartitionId, PartitionAnswer],
        acquire_request: AcquireRequest,
        limits: FetchParams,
    ) -> None:
        """`failed` has the errors of the session's partitions that this broker doesn't lead: they end the fetch."""
        self._groups = groups
        self._group_id = group_id
        self._partition_ids = partition_ids
        self._failed = failed
        self._acquire_request = acquire_request
        self._limits = limits
        self.answers: dict[PartitionId, PartitionAnswer] = {}

    async def attempt(self, turns: Turns, *, is_last: bool) -> bool:
        """Acquires the available records, if they are enough or this is the last attempt. True if the fetch is
        complete."""
        is_over = await self._attempt(is_last, turns)
        while is_over is None:
            is_over = await self._attempt(is_last, turns)
        return is_over

    async def _attempt(self, is_last: bool, turns: Turns) -> bool | None:
        """Tries as `attempt` does; returns None to try again."""
        self.answers = dict(self._failed)
        partitions = await self._hosted(turns)
        if self._needs_no_records or len(self.answers) == len(self._partition_ids) + len(self._failed):
            return True
        candidates = await self._read(partitions, turns)
        size = sum(len(candidate.records) for candidate in candidates)
        if not is_last and size < max(self._limits.min_bytes, 1) and not self.answers:
            return False
        left = self._acquire_request.max_records
        for candidate in candidates:
            await turns.next()
            answer, count = self._acquire(candidate, left)
            left -= count
            if count:
                self.answers[candidate.partition_id] = answer
        if self.answers:
            return True
        for candidate in candidates:
            await turns.next()
            if self._fetch_offset(candidate.hosted) != candidate.offset:
                return None  # all records read were aborted, deleted, or held back: there may be more after them
        return is_last

    @property
    def _needs_no_records(self) -> bool:
        """True if the request asks for no records, and so gets only the errors of partitions."""
        return self._acquire_request.max_records <= 0 or self._limits.max_bytes <= 0

    async def _hosted(self, turns: Turns) -> list[tuple[PartitionId, Hosted]]:
        """Returns the share partitions that can be fetched; the others are answered with their error."""
        partitions = []
        for partition_id in self._partition_ids:
            await turns.next()
            try:
                hosted = self._groups.hosted(self._group_id, partition_id)
            except KafkaError as error:
                self.answers[partition_id] = PartitionAnswer(error=error.detached())
                continue
            if hosted.error is not None:
                self.answers[partition_id] = PartitionAnswer(error=hosted.error)
            else:
                partitions.append((partition_id, hosted))
        return partitions

    def _fetch_offset(self, hosted: Hosted) -> int | None:
        """Returns the offset to read from; None if no more records may be in flight."""
        machine = hosted.machine
        if not machine.is_active:
            return None
        if hosted.scanner is not None:
            return hosted.scanner.fetch_offset(self._acquire_request.member_id)
        return machine.next_fetch_offset() if machine.can_acquire else None

    async def _read(self, partitions: Sequence[tuple[PartitionId, Hosted]], turns: Turns) -> list[Candidate]:
        """Reads the logs of the share partitions that may acquire more, from the fetch offset of each."""
        ready = []
        for named in partitions:
            await turns.next()
            if self._fetch_offset(named[1]) is not None:
                ready.append(named)
        candidates: list[Candidate] = []
        for partition_id, share in ready:
            await turns.next()
            try:
                candidate = self._candidate(partition_id, share, self._limits.max_bytes // len(ready))
            except KafkaError as error:
                self.answers[partition_id] = PartitionAnswer(error=error.detached())
                continue
            if candidate is not None:
                candidates.append(candidate)
        return candidates

    def _candidate(self, partition_id: PartitionId, share: Hosted, max_bytes: int) -> Candidate | None:
        """Reads the log of a share partition; from its start if records were deleted up to there. Returns None if there
        is nothing to read. Raises KafkaError."""
        offset = self._fetch_offset(share)
        if offset is None:
            return None
        if offset < share.partition.log_start_offset:
            move_log_start(share.machine, share.partition.log_start_offset)
            offset = self._fetch_offset(share)
            if offset is None:
                return None
        share.partition.traffic.reads += 1
        snapshot = share.partition.snapshot(self._limits.isolation_level)
        records = share.partition.read(snapshot, offset, max_bytes, True)
        return Candidate(partition_id, share, offset, records) if records else None

    def _acquire(self, candidate: Candidate, left: int) -> tuple[PartitionAnswer, int]:
        """Acquires at most `left` records of one partition for the member, and returns them with their count."""
        if left <= 0:
            return PartitionAnswer(), 0
        hosted, offset, view = candidate.hosted, candidate.offset, candidate.records
        if self._fetch_offset(hosted) != offset:
            return PartitionAnswer(), 0
        until = max(offset, hosted.machine.end_offset + 1) + left
        scanner = hosted.scanner
        batches = reading.scan(view, until if scanner is None else until + LOOKAHEAD_RECORDS)
        aborted: Sequence[tuple[int, int]] = ()
        if self._limits.committed_only:
            aborted = reading.aborted_batches(view, batches, hosted.partition.aborted_in(offset, view))
        if scanner is not None:
            scanner.scan(view, offset, batches, aborted)
        request = self._acquire_request
        if left < request.max_records:
            request = request._replace(max_records=left)
        acquired = hosted.acquire(request, offset, batches, aborted)
        if not acquired:
            return PartitionAnswer(), 0
        cover = reading.covering if scanner is None else reading.sparse
        records = cover(view, batches, acquired)
        hosted.partition.traffic.bytes_out += len(records)
        return PartitionAnswer(records, acquired), sum(acquired_range.size for acquired_range in acquired)

    async def others_wait(self, turns: Turns) -> bool:
        """True if other fetches already wait for records of these partitions."""
        for partition_id in self._partition_ids:
            await turns.next()
            hosted = self._groups.find(self._group_id, partition_id)
            if hosted is not None and hosted.queue:
                return True
        return False

    async def wait(self, *, comes_last: bool) -> None:
        """Waits until there are enough records, or the time is over. With `comes_last`, fetches that wait already go
        first: otherwise members that acknowledge records would also get all the next records."""
        clock = self._groups.environment.clock
        deadline = Deadline(clock, self._limits.max_wait_ms)
        if comes_last:
            await next_turn()
        turns = Turns(clock)
        is_over = await self.attempt(turns, is_last=deadline.is_over)
        while not is_over:
            waiter = Sleeper(1)
            timer = deadline.call(waiter.wake)
            watched: list[Hosted] = []
            try:
                await self._watch(waiter, watched, turns)
                if turns.taken:  # there may be more since the attempt
                    is_over = await self.attempt(Turns(clock), is_last=deadline.is_over)
                if not is_over:
                    await waiter.woken
                    turns = Turns(clock)
                    is_over = await self.attempt(turns, is_last=deadline.is_over)
            finally:
                timer.cancel()
                _unwatch(waiter, watched)

    async def _watch(self, waiter: Sleeper, watched: list[Hosted], turns: Turns) -> None:
        """Registers the waiter with the share partitions, which it adds to `watched`, and with the logs that may be
        read."""
        for _, hosted in await self._hosted(turns):
            await turns.next()
            watched.append(hosted)
            hosted.queue.add(waiter)
            scanner = hosted.scanner
            if self._fetch_offset(hosted) is not None if scanner is None else scanner.awaits_log:
                hosted.partition.add_waiter(waiter)


def _unwatch(waiter: Sleeper, watched: list[Hosted]) -> None:
    """Removes the waiter from share partitions, thousands of them in several turns of the event loop."""
    for hosted in watched[:UNWATCHED_AT_ONCE]:
        hosted.partition.waiters.pop(waiter, None)
        hosted.queue.done(waiter)
    del watched[:UNWATCHED_AT_ONCE]
    if watched:
        asyncio.get_running_loop().call_soon(_unwatch, waiter, watched)
