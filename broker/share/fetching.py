"""One ShareFetch at work: where to read, what to acquire, and the wait until there is something.

Reading and acquiring are one step that nobody comes between. A fetch that has too little waits for appends, and for
records that come free: released, timed out, or room made by acknowledgements. Source: DelayedShareFetch,
ShareFetchUtils (KIP-932, KIP-1206).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
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

AHEAD: Final = 100
"""Records that are looked into beyond what is asked for: some of them may have to wait."""


class Found(NamedTuple):
    """What a partition answers."""

    records: Buffer = b""
    acquired: Sequence[Acquired] = ()
    error: KafkaError | None = None


class Candidate(NamedTuple):
    """A share partition that may have something, with what was read of it."""

    named: PartitionId
    hosted: Hosted
    offset: int
    records: memoryview


class ShareFetching:
    """The fetch of one request; `found` has what its partitions answer."""

    def __init__(
        self,
        groups: ShareGroups,
        group_id: str,
        named: Sequence[PartitionId],
        acquire_request: AcquireRequest,
        limits: FetchParams,
    ) -> None:
        self._groups = groups
        self._group_id = group_id
        self._named = named
        self._acquire_request = acquire_request
        self._limits = limits
        self.found: dict[PartitionId, Found] = {}

    def attempt(self, *, is_last: bool = False) -> bool:
        """Acquires what there is, if it is enough, or this is the last attempt; whether the fetch is over."""
        is_over = self._attempt(is_last)
        while is_over is None:
            is_over = self._attempt(is_last)
        return is_over

    def _attempt(self, is_last: bool) -> bool | None:
        """As `attempt`; None if that is to be done again."""
        self.found.clear()
        hosted = self._hosted()
        if self._wants_nothing or (self._named and len(self.found) == len(self._named)):
            return True
        candidates = self._read(hosted)
        size = sum(len(each.records) for each in candidates)
        if not is_last and size < max(self._limits.min_bytes, 1) and not self.found:
            return False
        left = self._acquire_request.max_records
        for each in candidates:
            found, count = self._acquire(each, left)
            left -= count
            if count:
                self.found[each.named] = found
        if not self.found and any(self._place(each.hosted) != each.offset for each in candidates):
            return None  # what was there is aborted, or gone, or not to be had yet: there may be more behind it
        return is_last or bool(self.found)

    @property
    def _wants_nothing(self) -> bool:
        """Who asks for no record is told of the partitions that have none to give, and no more."""
        return self._acquire_request.max_records <= 0 or self._limits.max_bytes <= 0

    def _hosted(self) -> list[tuple[PartitionId, Hosted]]:
        """The share partitions; those that cannot be fetched from have their error found."""
        result = []
        for named in self._named:
            try:
                hosted = self._groups.hosted(self._group_id, named)
            except KafkaError as error:
                self.found[named] = Found(error=error)
                continue
            if hosted.error is not None:
                self.found[named] = Found(error=hosted.error)
            else:
                result.append((named, hosted))
        return result

    def _place(self, hosted: Hosted) -> int | None:
        """Where to read; None if there is no room for more."""
        engine = hosted.engine
        if not engine.is_active:
            return None
        if hosted.learning is not None:
            return hosted.learning.place(self._acquire_request.member_id)
        return engine.next_fetch_offset() if engine.can_acquire else None

    def _read(self, hosted: Sequence[tuple[PartitionId, Hosted]]) -> list[Candidate]:
        """What the logs have where the share partitions want to read, as far as they have room."""
        places = [(named, share, self._place(share)) for named, share in hosted]
        ready = [(named, share, offset) for named, share, offset in places if offset is not None]
        result: list[Candidate] = []
        for named, share, offset in ready:
            try:
                snapshot = share.partition.snapshot(self._limits.isolation_level)
                records = share.partition.read(snapshot, offset, self._limits.max_bytes // len(ready), True)
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and offset < share.partition.log_start_offset:
                    move_log_start(share.engine, share.partition.log_start_offset)
                    return self._read(hosted)  # from the start of the log, which is not out of range
                self.found[named] = Found(error=error)
                continue
            if records:
                result.append(Candidate(named, share, offset, records))
        return result

    def _acquire(self, candidate: Candidate, left: int) -> tuple[Found, int]:
        """What the member gets of one partition, and how many records those are."""
        if left <= 0:
            return Found(), 0
        _, hosted, offset, view = candidate
        until = max(offset, hosted.engine.end_offset + 1) + left
        learning = hosted.learning
        batches = reading.scan(view, until if learning is None else until + AHEAD)
        aborted: Sequence[tuple[int, int]] = ()
        if self._limits.committed_only:
            aborted = reading.aborted_batches(view, batches, hosted.partition.aborted_in(offset, view))
        if learning is not None:
            learning.learn(view, offset, batches, aborted)
        acquired = hosted.acquire(self._acquire_request._replace(max_records=left), offset, batches, aborted)
        if not acquired:
            return Found(), 0
        cover = reading.covering if learning is None else reading.sparse
        records = cover(view, batches, acquired)
        return Found(records, acquired), sum(each.size for each in acquired)

    @property
    def is_in_line(self) -> bool:
        """Whether others wait already for what this fetch wants."""
        found = (self._groups.find(self._group_id, named) for named in self._named)
        return any(hosted is not None and hosted.queue for hosted in found)

    async def wait(self, *, comes_last: bool) -> None:
        """Until there is enough, or the time is up. With `comes_last`, those who wait already get what they are just
        offered: or else the members that have records would get all others too, with each acknowledgement."""
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
        """Has the waiter woken by the logs that may be read, and by the share partitions themselves."""
        watched = []
        for _, hosted in self._hosted():
            hosted.queue.add(waiter)
            learning = hosted.learning
            if self._place(hosted) is not None if learning is None else learning.awaits_log:
                hosted.partition.waiters[waiter] = None
            watched.append(hosted)
        return watched
