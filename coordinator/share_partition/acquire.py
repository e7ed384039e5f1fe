"""Acquisition: gives a member records of the fetched batches, under a lock.

Whole batches of the log are acquired, which may be more records than requested, except in the mode RECORD_LIMIT.
Records that fail repeatedly come in ever smaller portions, and alone at their last attempt, so that a record that
crashes its consumer affects no others. Source: SharePartition.acquire (KIP-932, KIP-1206).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from coordinator.share_partition.cache import InFlightBatch
from coordinator.share_partition.expiry import archive
from coordinator.share_partition.request import Acquired, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Run
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import AVAILABLE, FREE
from protocol.tuples import new_tuple

LEAST_THROTTLED_COUNT: Final = 2
"""The lowest delivery count of throttling, which begins after half of the allowed deliveries. If the delivery count
limit is not above this, the last attempt isn't made alone either."""


_last: Final = attrgetter("last")


class DeliveryThrottle:
    """The delivery counts from which on records come in smaller portions, and alone, by the group's delivery count
    limit."""

    __slots__ = ("alone_at", "starts_at")

    def __init__(self, max_delivery_count: int) -> None:
        self.starts_at = max(LEAST_THROTTLED_COUNT, (max_delivery_count + 1) // 2)
        self.alone_at = max_delivery_count - (max_delivery_count > LEAST_THROTTLED_COUNT)

    def portion(self, size: int, delivery_count: int) -> int:
        """Returns the number of records of a batch of this size that come at once: half, then a quarter, and so on."""
        return max(1, size >> (delivery_count - self.starts_at + 1))


class Acquisition:
    """The acquisition of one fetch."""

    __slots__ = ("count", "fetched", "limit", "lock_until_ms", "partition", "request", "result", "throttle")

    def __init__(
        self, partition: SharePartition, request: AcquireRequest, fetched: Sequence[FetchedBatch], now_ms: int
    ) -> None:
        self.partition = partition
        self.request = request
        self.fetched = fetched
        self.lock_until_ms = now_ms + partition.limits.lock_duration_ms
        self.throttle = DeliveryThrottle(partition.limits.max_delivery_count)
        self.limit = 0
        """The number of records to acquire, before whole batches round it up."""
        self.count = 0
        self.result: list[Acquired] = []

    @property
    def left(self) -> int:
        return self.limit - self.count

    def run(self, fetch_offset: int) -> list[Acquired]:
        partition, fetched = self.partition, self.fetched
        last = self._room(fetch_offset)
        if self.limit <= 0:
            return self.result
        base = fetched[0].first
        if fetch_offset < base:
            pass_over(partition, fetch_offset, base)
        floor = partition.cache.floor(base)
        if floor is None:
            base = max(base, partition.start_offset)
        elif floor.last >= base:
            base = floor.first
        in_flight = partition.cache.overlapping(min(fetched[0].first, base), last)
        if in_flight:
            self._between(in_flight, base, last)
        else:
            self._new(base, last)
        if not self.result:
            partition.advance()
        return self.result

    def _room(self, fetch_offset: int) -> int:
        """Returns the last offset to acquire. If no more records may enter, records that are already in flight may
        still be acquired again."""
        partition, last = self.partition, self.fetched[-1].last
        most = self.request.max_records
        self.limit = min(most, partition.limits.max_in_flight_records - partition.in_flight_count)
        if self.limit <= 0 and fetch_offset <= partition.end_offset:
            self.limit = min(most, partition.end_offset - fetch_offset + 1)
            last = min(last, partition.end_offset)
        return last

    def _between(self, in_flight: Sequence[InFlightBatch], base: int, last: int) -> None:
        """Acquires records that are partly in flight: available ones, missing ones between them, and new ones after
        them."""
        partition, first = self.partition, self.fetched[0].first
        gap_start = base
        for batch in in_flight:
            if self.left <= 0:
                break
            if partition.has_gap:
                if gap_start < batch.first:
                    self._new(gap_start, batch.first - 1)
                gap_start = batch.last + 1
                if self.left <= 0:
                    break
            if not self._again(batch, first, last):
                self.limit = self.count
                break
        if self.left > 0 and in_flight[-1].last < last:
            self._new(in_flight[-1].last + 1, last)
        if self.left > 0:
            partition.close_gap(last + 1)
        elif self.result:
            partition.close_gap(self.result[-1].last + 1)

    def _again(self, batch: InFlightBatch, first: int, last: int) -> bool:
        """Acquires the available records of a batch in flight; False if the fetch must not acquire any other
        records."""
        throttled = self._is_throttled(batch, first, last)
        if throttled and self.count:
            return False
        is_part = not batch.is_within(first, last) or (self.request.is_exact and batch.size > self.left)
        if batch.is_tracked or is_part or throttled:
            if batch.is_tracked or batch.runs.head.can_be_acquired:
                return not (self._part(batch, first, last) and throttled)
            return True
        run = batch.runs.head
        if run.can_be_acquired:
            self._acquire(run)
        return True

    def _acquire(self, run: Run) -> None:
        run.acquire(self.request.member_id, self.lock_until_ms)
        self._give(new_tuple(Acquired, (run.first, run.last, run.delivery_count)))

    def _give(self, acquired: Acquired) -> None:
        self.count += acquired.size
        self.result.append(acquired)

    def _is_throttled(self, batch: InFlightBatch, first: int, last: int) -> bool:
        throttled_from = self.throttle.starts_at
        runs = batch.part(first, last) if batch.is_tracked else batch.runs
        return any(run.delivery_count >= throttled_from and run.can_be_acquired for run in runs)

    def _part(self, batch: InFlightBatch, first: int, last: int) -> int:
        """Acquires records of a batch one by one, as far as allowed; returns their number."""
        batch.is_tracked = True
        throttle = self.throttle
        portion = self.left if self.request.is_exact else last - first + 1
        acquired: list[Acquired] = []
        count = 0
        is_throttled = False
        for run in [run for run in batch.part(first, last) if run.can_be_acquired]:
            if run.delivery_count == throttle.alone_at and count:
                break
            if run.delivery_count >= throttle.starts_at and not is_throttled:
                is_throttled = True
                portion = min(portion, throttle.portion(batch.size, run.delivery_count))
            room = 1 if run.delivery_count == throttle.alone_at else max(portion - count, 1)
            start = max(run.first, first)
            piece = batch.cut(start, min(run.last, last, start + room - 1))[0]
            piece.acquire(self.request.member_id, self.lock_until_ms)
            acquired.append(Acquired(piece.first, piece.last, piece.delivery_count))
            count += piece.size
            if count >= portion or piece.delivery_count > throttle.alone_at:
                break
        for acquired_range in joined(acquired):
            self._give(acquired_range)
        return count

    # Records that were not in flight yet.

    def _new(self, first: int, last: int) -> None:
        partition, most = self.partition, self.left
        if not partition.cache and partition.end_offset > first:
            first = partition.end_offset
        if first > last:
            return
        if most < last - first + 1:
            end = self._batch_end(first + most - 1)
            last = min(end, last) if partition.has_gap else end
        self._take(first, last, most)
        if partition.cache.first_offset == first:
            partition.cache.move_start(first)
        partition.end_offset = max(partition.end_offset, last)
        partition.close_gap(self.result[-1].last + 1)

    def _batch_end(self, offset: int) -> int:
        """Returns the last offset of the log's batch that has the offset."""
        at = bisect_left(self.fetched, offset, key=_last)
        has_batch = at < len(self.fetched) and self.fetched[at].first <= offset
        return self.fetched[at].last if has_batch else offset

    def _take(self, first: int, last: int, most: int) -> None:
        if self.request.is_exact:
            self._take_some(first, last, min(last, first + most - 1))
            return
        least = max(self.request.batch_size, 1)  # no range is empty, whatever the request's batch size is
        if last - first + 1 > least:
            at = bisect_left(self.fetched, first, key=_last)
            while at < len(self.fetched) and self.fetched[at].first <= last:
                start = self.fetched[at].first
                if start - first >= least:
                    self._take_some(first, start - 1, start - 1)
                    first = start
                at += 1
        self._take_some(first, last, last)

    def _take_some(self, first: int, last: int, until: int) -> None:
        """Adds a batch in flight, and acquires its records up to `until`."""
        run = Run(first, last, AVAILABLE, 0)
        batch = self.partition.cache.add(run)
        if until < last:
            batch.cut(first, until)
        run.acquire(self.request.member_id, self.lock_until_ms)
        self._give(new_tuple(Acquired, (first, until, 1)))


def acquire(
    partition: SharePartition,
    request: AcquireRequest,
    fetch_offset: int,
    fetched: Sequence[FetchedBatch],
    now_ms: int,
) -> list[Acquired]:
    """Acquires records of consecutive batches that were read from `fetch_offset`; returns the ranges, in order."""
    if not partition.is_active or request.max_records <= 0 or not fetched or fetched[-1].last < partition.start_offset:
        return []
    if partition.holdback is not None:
        return partition.holdback.acquire(partition, request, fetch_offset, fetched, now_ms)
    return Acquisition(partition, request, fetched, now_ms).run(fetch_offset)


def pass_over(partition: SharePartition, fetch_offset: int, base: int) -> None:
    """Archives records that were requested but could not be read, because compaction has removed them from the log."""
    if partition.gap is not None and fetch_offset <= partition.first_missing(partition.gap.start) < base:
        partition.close_gap(base)
    if archive(partition, fetch_offset, base - 1, FREE):
        partition.advance()


def joined(ranges: Iterable[Acquired]) -> Iterable[Acquired]:
    """Yields the ranges, with neighbours of the same delivery count joined."""
    current: Acquired | None = None
    for part in ranges:
        if current is not None and part.first == current.last + 1 and part.delivery_count == current.delivery_count:
            current = Acquired(current.first, part.last, current.delivery_count)
            continue
        if current is not None:
            yield current
        current = part
    if current is not None:
        yield current
