"""Describes a share partition: its records in flight and the records after them, each range with the reason why it is
not delivered now. It changes nothing.

The ranges are made one after the other, so that a description costs as much as it has ranges. Only for a group with
ordering by key it reads the keys of all records in flight, as a fetch does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Final, NamedTuple

from coordinator.share_partition.holdback import holdback_of
from coordinator.share_partition.run import Run
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import ACQUIRED, ARCHIVING, AVAILABLE, DELAYED, TERMINAL
from protocol.messages.describe_share_group_records import NOT_IN_FLIGHT, DeliveryReason, RecordRange

NOTHING: Final = -1
"""The offset or time of a range that has none."""

NO_WAITS: Final[Mapping[int, int]] = MappingProxyType({})


class LogAndMembers(NamedTuple):
    """Facts from outside the share partition: its log, its members and their fetches."""

    high_watermark: int
    readable_until: int
    """The offset up to which the group may read: the high watermark, or the last stable offset."""
    session_count: int
    """Share sessions that have the partition."""
    waiting_count: int
    """Share fetches that wait for its records."""

    @property
    def reason(self) -> DeliveryReason:
        """Why records that any member may acquire are not delivered."""
        if not self.session_count:
            return DeliveryReason.NO_MEMBER
        return DeliveryReason.OFFERED if self.waiting_count else DeliveryReason.NOT_FETCHED


class RangePage(NamedTuple):
    """Ranges in order, without holes between them."""

    ranges: list[RecordRange]
    next_offset: int
    """The first offset of the next range; NOTHING if there is none."""


def describe(partition: SharePartition, around: LogAndMembers, first_offset: int, most: int) -> RangePage:
    """Returns up to `most` ranges, which begin at `first_offset`, or at the start offset if that is later."""
    ranges: list[RecordRange] = []
    for described in _joined(_all(partition, around, max(first_offset, partition.start_offset))):
        if len(ranges) >= most:
            return RangePage(ranges, described.first_offset)
        ranges.append(described)
    return RangePage(ranges, NOTHING)


def _all(partition: SharePartition, around: LogAndMembers, at: int) -> Iterator[RecordRange]:
    """Yields the ranges from offset `at` to the high watermark."""
    waits = NO_WAITS if partition.holdback is None else holdback_of(partition).waits(partition)
    batches = partition.cache.overlapping(at, partition.cache.last_offset) if partition.cache else []
    for batch in batches:
        yield from _hole(partition, at, batch.first - 1)
        at = max(at, batch.first)
        for run in batch.part(at, batch.last):
            yield from _run(run, max(run.first, at), around, waits)
        at = batch.last + 1
    yield from _after(partition, around, at)


def _hole(partition: SharePartition, first: int, last: int) -> Iterator[RecordRange]:
    """Yields the offsets between two batches in flight: in a gap they are not read yet, elsewhere the log doesn't have
    them."""
    gap_start = partition.gap.start if partition.gap is not None and partition.has_gap else last + 1
    yield from _range(first, min(last, gap_start - 1), NOT_IN_FLIGHT, DeliveryReason.ABSENT)
    yield from _range(max(first, gap_start), last, NOT_IN_FLIGHT, DeliveryReason.UNREAD)


def _after(partition: SharePartition, around: LogAndMembers, at: int) -> Iterator[RecordRange]:
    """Yields the records that are not in flight yet, from offset `at` on."""
    reason = DeliveryReason.WINDOW_FULL if is_full(partition) else around.reason
    end = min(around.readable_until, around.high_watermark)
    yield from _range(at, end - 1, NOT_IN_FLIGHT, reason)
    yield from _range(max(at, end), around.high_watermark - 1, NOT_IN_FLIGHT, DeliveryReason.OPEN_TRANSACTION)


def is_full(partition: SharePartition) -> bool:
    """True if no further record may be in flight."""
    if partition.holdback is not None:
        return not holdback_of(partition).can_learn(partition)
    return partition.in_flight_count >= partition.limits.max_in_flight_records


def _range(first: int, last: int, state: int, reason: DeliveryReason) -> Iterator[RecordRange]:
    if first <= last:
        yield RecordRange(first_offset=first, last_offset=last, delivery_state=state, reason=reason)


def _run(run: Run, first: int, around: LogAndMembers, waits: Mapping[int, int]) -> Iterator[RecordRange]:
    """Yields the part of a run from offset `first` on. A change that isn't written yet is not shown as the state."""
    state, member_id = (run.state, run.member_id) if run.change is None else run.before
    reason = _reason(run, around)
    has_time = run.lock_until_ms > 0 and state in (ACQUIRED, DELAYED)
    blocked: Iterable[tuple[int, Iterable[int]]] = ((NOTHING, (first, run.last)),)
    if waits and run.can_be_acquired:
        blocked = groupby(range(first, run.last + 1), lambda offset: waits.get(offset, NOTHING))
    for blocker, offsets in blocked:
        start, *rest = offsets
        yield RecordRange(
            first_offset=start,
            last_offset=rest[-1] if rest else start,
            delivery_state=state,
            delivery_count=run.delivery_count,
            member_id=member_id or None,
            until_ms=run.lock_until_ms if has_time else NOTHING,
            waits_for=blocker,
            reason=reason if blocker == NOTHING else DeliveryReason.KEY_HELD,
        )


def _reason(run: Run, around: LogAndMembers) -> DeliveryReason:
    if run.change is not None:
        return DeliveryReason.CHANGING
    if run.state in TERMINAL:
        return DeliveryReason.DONE
    if run.state is DELAYED:
        return DeliveryReason.BACKOFF if run.delivery_count else DeliveryReason.SCHEDULED
    return around.reason if run.state is AVAILABLE else REASONS[run.state]


REASONS: Final = {ACQUIRED: DeliveryReason.HELD, ARCHIVING: DeliveryReason.BURYING}


def _joined(ranges: Iterable[RecordRange]) -> Iterator[RecordRange]:
    """Yields the ranges; neighbours that differ only in their offsets are one range."""
    current: RecordRange | None = None
    for following in ranges:
        if current is not None and _is_alike(current, following):
            current.last_offset = following.last_offset
            continue
        if current is not None:
            yield current
        current = following
    if current is not None:
        yield current


def _is_alike(first: RecordRange, second: RecordRange) -> bool:
    return (
        first.delivery_state == second.delivery_state
        and first.reason == second.reason
        and first.delivery_count == second.delivery_count
        and first.member_id == second.member_id
        and first.until_ms == second.until_ms
        and first.waits_for == second.waits_for
    )
