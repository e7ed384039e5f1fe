"""Holdback: keeps records in flight from being acquired, because of their delivery time or their key.

Both are extensions of Odradek, and off unless a group sets their options. Both depend on a record's content, so records
are *learned* in the order of their offsets before any of them is acquired: `known_until` is the first offset that isn't
learned. Learned records enter the cache as available, and count as in flight, which also bounds the memory of their
keys and times.

    by time   a record is DELAYED, as after a release, until its time has come (run.py, expiry.py)
    by key    unfinished records of a key are acquired by one member only, and none is acquired before an earlier
              one is: it waits for records that are delayed, released, or in a change

Nothing here is stored: a share partition that is loaded learns from the log again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from coordinator.share_partition.acquire import DeliveryThrottle, joined, pass_over
from coordinator.share_partition.cache import InFlightBatch
from coordinator.share_partition.expiry import archive
from coordinator.share_partition.request import Acquired, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import NOBODY, Run
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import ACQUIRED, AVAILABLE, DELAYED, FREE

LARGEST_BATCH: Final = 64
"""Maximum number of records that enter the cache as one batch. They soon differ, and a small batch is searched fast."""

TICK_MS: Final = 10
"""Times are rounded up to this, so that records with close times share a timer."""


class HoldbackRules(NamedTuple):
    """A group's options: the header that delays records, and whether keys keep their order."""

    delay_header: str = ""
    """The name of the header with a record's delivery time; empty for none."""
    delay_max_ms: int = 0
    by_key: bool = False

    @property
    def is_any(self) -> bool:
        return self.by_key or bool(self.delay_header)


NO_RULES: Final = HoldbackRules()


class Facts(NamedTuple):
    """The keys and times of the log's records from offset first to last."""

    first: int
    last: int
    batches: Sequence[tuple[int, int]]
    """First and last offsets of the log's batches. Offsets between them are gone from the log."""
    keys: Mapping[int, int]
    """A number for each record's key, by offset, for records that have a key."""
    times: Mapping[int, int]
    """The delivery time in ms, by offset, for records that must not be delivered earlier."""


class Piece(NamedTuple):
    """Records of a batch in flight that a member may acquire."""

    batch: InFlightBatch
    first: int
    last: int
    delivery_count: int


class Holdback:
    """The keys and times of a share partition's records, as far as they were read."""

    __slots__ = ("_forgotten_until", "keys", "known_until", "rules")

    def __init__(self, rules: HoldbackRules) -> None:
        self.rules = rules
        self.known_until = 0
        self.keys: dict[int, int] = {}
        """Keys by offset, from the start offset on."""
        self._forgotten_until = 0

    def frontier(self, partition: SharePartition) -> int:
        """Returns the first offset that isn't learned."""
        return max(self.known_until, partition.start_offset)

    def learnable_until(self, partition: SharePartition) -> int:
        """Returns the last offset that may be learned: within the limit of records in flight, or in flight already."""
        return max(partition.start_offset + partition.limits.max_in_flight_records - 1, partition.end_offset)

    def learnable(self, partition: SharePartition, fetched: Iterable[FetchedBatch]) -> list[FetchedBatch]:
        """Returns the fetched batches to learn, whole if possible. A batch that is larger than the limit of records in
        flight is learned in parts, each once half of the limit is free. The parts must be large, because reading a part
        costs as much as reading all parts before it."""
        first, until = self.frontier(partition), self.learnable_until(partition)
        most = partition.limits.max_in_flight_records
        result = []
        for batch in fetched:
            if first > until:
                break
            if batch.last < first:
                continue
            if batch.last - max(batch.first, first) >= most:
                if first > partition.end_offset and until - first + 1 < most // 2:
                    break
                batch = batch._replace(last=max(min(batch.last, until), batch.first))
            result.append(batch)
            first = batch.last + 1
        return result

    def can_learn(self, partition: SharePartition) -> bool:
        return self.frontier(partition) <= self.learnable_until(partition)

    def next_offset(self, partition: SharePartition, member_id: str) -> int | None:
        """Returns the offset to read from for a member: the first record that it may acquire, or else the first to
        learn; None if no more records may be in flight."""
        for piece in self._free(partition, member_id, 0, self.frontier(partition) - 1):
            return piece.first
        return self.frontier(partition) if self.can_learn(partition) else None

    def learn(self, partition: SharePartition, facts: Facts, now_ms: int) -> None:
        """Adds facts that continue the learned offsets; ignores all other facts."""
        first = self.frontier(partition)
        if not facts.first <= first <= facts.last:
            return
        at = first
        for start, last in facts.batches:
            _enter_hole(partition, at, start - 1)
            _enter(partition, max(start, at), last)
            at = max(last + 1, at)
        self._forget(partition.start_offset)
        if self.rules.by_key:
            self.keys.update({offset: key for offset, key in facts.keys.items() if offset >= first})
        for start, last, time_ms in _alike(facts.times, first, now_ms):
            _delay(partition, start, last, time_ms)
        self.known_until = facts.last + 1
        if partition.gap is not None and partition.gap.start <= facts.last:
            partition.close_gap(facts.last + 1)
        partition.advance()

    def _forget(self, start_offset: int) -> None:
        """Removes the keys of records below the start offset."""
        if start_offset - self._forgotten_until > len(self.keys):
            self.keys = {offset: key for offset, key in self.keys.items() if offset >= start_offset}
        else:
            for offset in range(self._forgotten_until, start_offset):
                self.keys.pop(offset, None)
        self._forgotten_until = max(start_offset, self._forgotten_until)

    # Acquisition.

    def acquire(
        self,
        partition: SharePartition,
        request: AcquireRequest,
        fetch_offset: int,
        fetched: Sequence[FetchedBatch],
        now_ms: int,
    ) -> list[Acquired]:
        """Acquires as `acquire.acquire` does, but record by record in every mode: never more than requested."""
        if fetch_offset < fetched[0].first:
            pass_over(partition, fetch_offset, fetched[0].first)
        last = min(fetched[-1].last, self.frontier(partition) - 1)
        free = self._free(partition, request.member_id, fetched[0].first, last)
        pieces = list(_portion(free, request.max_records, partition.limits.max_delivery_count))
        if not pieces:
            partition.advance()
            return []
        lock_until_ms = now_ms + partition.limits.lock_duration_ms
        runs = [run for piece in pieces for run in _runs(piece)]
        for run in runs:
            run.acquire(request.member_id, lock_until_ms)
        partition.cache.join(runs)
        return list(joined(Acquired(piece.first, piece.last, piece.delivery_count + 1) for piece in pieces))

    def _free(self, partition: SharePartition, member_id: str, first: int, last: int) -> Iterator[Piece]:
        """Yields the records from `first` to `last` that the member may acquire, in order; a record's key requires that
        the member acquires the earlier records first."""
        first = max(first, partition.start_offset)
        if self.rules.by_key:
            yield from self._free_by_key(partition, member_id, first, last)
            return
        for batch in partition.cache.overlapping(first, last):
            for run in batch.runs:
                if run.can_be_acquired and run.first <= last and run.last >= first:
                    yield Piece(batch, max(run.first, first), min(run.last, last), run.delivery_count)

    def _free_by_key(self, partition: SharePartition, member_id: str, first: int, last: int) -> Iterator[Piece]:
        begin, window = partition.start_offset, range(first, last + 1)
        closed = {key for key, holder in self._holders(partition).items() if holder != member_id}
        for batch in partition.cache.overlapping(begin, last):
            for run in batch.runs:
                if run.state in FREE and run.last >= begin:
                    yield from self._open(batch, run, range(max(run.first, begin), run.last + 1), window, closed)

    def _open(self, batch: InFlightBatch, run: Run, offsets: range, window: range, closed: set[int]) -> Iterator[Piece]:
        """Yields the parts of a run that are in the window and whose keys are not in `closed`; adds the keys of other
        records to `closed`."""
        keys = self.keys
        may_be = window if run.can_be_acquired else range(0)
        start = -1
        for offset in offsets:
            key = keys.get(offset)
            if offset in may_be and (key is None or key not in closed):
                if start < 0:
                    start = offset
                continue
            if key is not None:
                closed.add(key)
            if start >= 0:
                yield Piece(batch, start, offset - 1, run.delivery_count)
                start = -1
        if start >= 0:
            yield Piece(batch, start, offsets[-1], run.delivery_count)

    def waits(self, partition: SharePartition) -> dict[int, int]:
        """Returns, for each available record that waits for its key, the offset of the record for which it waits: the
        first that a member has, or else the first that is delayed or in a change."""
        closed: dict[int, int] = {}
        waits: dict[int, int] = {}
        if not self.rules.by_key:
            return waits
        keys, begin = self.keys, partition.start_offset
        for run in partition.cache.runs():
            if holder_of(run) is not None:
                for offset in range(max(run.first, begin), run.last + 1):
                    if (key := keys.get(offset)) is not None:
                        closed.setdefault(key, offset)
        for run in partition.cache.runs():
            if run.state not in FREE:
                continue
            for offset in range(max(run.first, begin), run.last + 1):
                if (key := keys.get(offset)) is None:
                    continue
                if not run.can_be_acquired:
                    closed.setdefault(key, offset)
                elif key in closed:
                    waits[offset] = closed[key]
        return waits

    def _holders(self, partition: SharePartition) -> dict[int, str]:
        """Returns, by key, the member that has acquired records of the key; NOBODY if several members have, because
        they acquired records before the option was set."""
        keys, result = self.keys, dict[int, str]()
        for batch in partition.cache:
            for run in batch.runs:
                member_id = holder_of(run)
                if member_id is None:
                    continue
                for offset in range(max(run.first, partition.start_offset), run.last + 1):
                    key = keys.get(offset)
                    if key is not None and result.setdefault(key, member_id) != member_id:
                        result[key] = NOBODY
        return result


def holder_of(run: Run) -> str | None:
    """Returns the member that has the run, or gets it back if its acknowledgement isn't written."""
    if run.state is ACQUIRED:
        return run.member_id
    if run.change is not None and run.before[0] is ACQUIRED:
        return run.before[1]
    return None


def holdback_of(partition: SharePartition) -> Holdback:
    """Returns the holdback of a partition that has one."""
    assert isinstance(partition.holdback, Holdback)
    return partition.holdback


def hold_back(partition: SharePartition, rules: HoldbackRules) -> None:
    """Sets the rules. A change has the same effect as loading the share partition again."""
    if (NO_RULES if partition.holdback is None else holdback_of(partition).rules) == rules:
        return
    delayed = [run for run in partition.cache.runs() if run.state is DELAYED and not run.delivery_count]
    partition.end_delays(delayed)
    partition.holdback = Holdback(rules) if rules.is_any else None


def _enter(partition: SharePartition, first: int, last: int, largest: int = LARGEST_BATCH) -> None:
    """Adds these offsets as available records in flight, unless they are in flight already."""
    if first > last:
        return
    at = first
    for batch in partition.cache.overlapping(first, last):
        _add(partition, at, batch.first - 1, largest)
        at = max(at, batch.last + 1)
    _add(partition, at, last, largest)
    partition.end_offset = max(partition.end_offset, last)


def _enter_hole(partition: SharePartition, first: int, last: int) -> None:
    """Archives offsets that are no longer in the log."""
    if first <= last:
        _enter(partition, first, last, last - first + 1)
        archive(partition, first, last, FREE)


def _add(partition: SharePartition, first: int, last: int, largest: int) -> None:
    for start in range(first, last + 1, largest):
        partition.cache.add(Run(start, min(start + largest - 1, last), AVAILABLE, 0))


def _alike(times: Mapping[int, int], first: int, now_ms: int) -> Iterator[tuple[int, int, int]]:
    """Yields ranges of consecutive offsets from `first` on that wait for the same time."""
    start, last, due_ms = -1, -2, 0
    for offset, time_ms in times.items():
        if offset < first or time_ms <= now_ms:
            continue
        rounded_ms = -(-time_ms // TICK_MS) * TICK_MS
        if offset == last + 1 and rounded_ms == due_ms:
            last = offset
            continue
        if start >= 0:
            yield start, last, due_ms
        start, last, due_ms = offset, offset, rounded_ms
    if start >= 0:
        yield start, last, due_ms


def _delay(partition: SharePartition, first: int, last: int, until_ms: int) -> None:
    for batch in partition.cache.overlapping(first, last):
        for run in batch.cut(max(first, batch.first), min(last, batch.last)):
            if run.can_be_acquired and not run.delivery_count:
                run.delay(until_ms)


def _portion(free: Iterator[Piece], most: int, max_delivery_count: int) -> Iterator[Piece]:
    """Yields as many records as requested. Records that fail repeatedly come in smaller portions and separately, and
    alone at their last attempt (as in acquire.py)."""
    throttle = DeliveryThrottle(max_delivery_count)
    left, is_throttled, has_any = most, False, False
    for piece in free:
        count = piece.delivery_count
        if count < throttle.starts_at:
            if is_throttled:
                return
        elif has_any and (not is_throttled or count >= throttle.alone_at):
            return
        elif not is_throttled:
            is_throttled = True
            left = 1 if count >= throttle.alone_at else min(left, throttle.portion(piece.batch.size, count))
        if piece.last - piece.first + 1 >= left:
            yield piece._replace(last=piece.first + left - 1)
            return
        yield piece
        left -= piece.last - piece.first + 1
        has_any = True


def _runs(piece: Piece) -> Sequence[Run]:
    batch = piece.batch
    if piece.first == batch.first and piece.last == batch.last:
        return batch.part(piece.first, piece.last)
    return batch.cut(piece.first, piece.last)
